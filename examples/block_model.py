# %% [markdown]
# # From the first draw: burn-in, dependence, consensus
#
# Which draws should be used? Here is a network of 200 nodes in blocks, and a Gibbs sampler that finds the blocks and
# their number. All its draws from a random start on are kept. Zhou, Dudeja and Amini (*Statistical guarantees for
# consensus clustering*, ICLR 2023, appendix E) ask two questions about such a chain: when does it become stationary,
# and do the nodes then change blocks independently of each other?
#
# The posterior is a small file. `examples/sample_block_model.py` made it: it simulates a stochastic block model with
# five blocks, and samples a nonparametric one, with a Dirichlet process prior on the blocks and marginalized link
# probabilities. Four chains of 1,000 sweeps each take a few seconds.

# %%
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

tree = xr.open_datatree(DATA / "block_model.nc", engine="h5netcdf").load()
draws = pc.as_partition_draws(tree, "z")
display(draws)

# %% [markdown]
# ## The burn-in by eye
#
# How far is each draw from the one before? The distance is variation of information (VI), in bits, or one minus the
# normalized mutual information (NMI), as in the paper's Figure 5.

# %%
vi = pc.diagnostics.sequential_distances(draws, loss="vi")
axes = pc.diagnostics.plot_sequence(vi)

# %%
nmi = pc.diagnostics.sequential_distances(draws, loss="nmi")
axes = pc.diagnostics.plot_sequence(nmi)

# %% [markdown]
# The first sweeps move most nodes, and from about draw 100 on the steps look stationary. But small steps do not prove
# that a chain has reached the posterior: a chain that drifts takes small steps, too. The lower panels therefore show
# how far each draw is from the second half of its chain.
#
# ## The burn-in by a rule
#
# The rule (MSER-5) uses the trace of the lower panel, chain by chain. It discards the initial draws whose removal
# minimizes the standard error of the mean.

# %%
display(vi)

# %%
display(nmi.to_dataframe())

# %% [markdown]
# With either distance, about a tenth of the draws is discarded. The paper puts the end of its chain's burn-in around
# iteration 100, by eye. The column `step` is the distance between successive draws of the stationary chain. The
# attribute `kept` has the numbers of the draws to keep. Do the chains agree now?

# %%
kept = draws.take(vi.kept)
print("all draws: ", pc.diagnose(draws).verdict)
print("after the burn-in: ", pc.diagnose(kept).verdict)

# %% [markdown]
# ## Do nodes change blocks independently?
#
# Many consensus methods vote node by node. This assumes that the joint posterior is nearly the product of its
# marginals. The test shuffles each node's labels over the draws in one half of the draws, and compares this half with
# the other. It first thins the draws until they are nearly uncorrelated, so that autocorrelation does not count as
# dependence.

# %%
independence = pc.diagnostics.near_independence(kept, random_seed=1)
display(independence)

# %%
ax = pc.diagnostics.plot_near_independence(independence)

# %% [markdown]
# The figure follows the paper's Figure 6. Green shows the distances between draws, red the distances from draws to the
# product of the marginals. The two overlap, but not fully: the product is near the posterior, and the test can just
# distinguish them. The halves are random, so other seeds give other p-values:

# %%
display([pc.diagnostics.near_independence(kept, random_seed=seed).p_value for seed in range(1, 9)])

# %% [markdown]
# ## The consensus

# %%
best = pc.consensus_partition(kept, random_seed=1)
display(best)

# %% [markdown]
# The consensus has three blocks, but the network was simulated from five. The three smallest of these are one block
# here, because they have too few links to be distinguished. On the left is the network, its nodes in the order of the
# consensus and, within a block, of the simulated blocks. On the right is the posterior similarity matrix.

# %%
observed = tree["observed_data"]
order = np.lexsort((observed["block"].values, best.labels.values))
fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8), layout="constrained")
left.imshow(observed["links"].values[np.ix_(order, order)], cmap="Greys", interpolation="nearest")
for edge in np.flatnonzero(np.diff(best.labels.values[order])) + 0.5:
    left.axhline(edge, color="#C1272D", linewidth=0.8)
    left.axvline(edge, color="#C1272D", linewidth=0.8)
left.set(title="links", xticks=[], yticks=[])
ax = pc.plot_psm(kept, best, ax=right)

# %%
truth = observed["block"]
print(f"VI between the consensus and the blocks simulated from: {pc.partition_loss(best, truth):.2f} bits")
print(f"expected VI over the draws kept: {best.expected_loss:.2f} bits (MCSE {best.mcse:.2g})")

# %% [markdown]
# ## A Dirichlet process mixture
#
# The same questions for [another posterior](choosing_a_loss.py): a Dirichlet process mixture of normals for the
# velocities of 82 galaxies. Its sampler had dropped the tuning draws. The rule minimizes the standard error, and
# may therefore still discard a few draws, here at most a hundredth of a chain:

# %%
galaxies = pc.as_partition_draws(xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf").load(), "z")
sequence = pc.diagnostics.sequential_distances(galaxies)
display(sequence)

# %%
mixture = pc.diagnostics.near_independence(galaxies.take(sequence.kept), random_seed=1)
ax = pc.diagnostics.plot_near_independence(mixture)
print(mixture.verdict)

# %% [markdown]
# Here the two histograms do not overlap. Items move jointly: when a component of the mixture splits or moves, all the
# galaxies on one side of it change clusters at once. This is no fault of the draws. A consensus is chosen by its
# expected loss over the draws as they are, joint moves included:

# %%
display(pc.consensus_partition(galaxies, random_seed=1))

# %% [markdown]
# But error rates, or the number of draws needed, cannot be taken from a theory in which items err independently.
