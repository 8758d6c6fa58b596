# %% [markdown]
# # Which draws are burn-in, and do items move independently?
#
# `sequential_distances` shows the burn-in, and its attribute `kept` has the draws to keep: here about a tenth of each
# chain is discarded, and then the chains agree. `near_independence` tests whether items change clusters independently.
# Consensus methods that vote item by item assume it. The nodes of this network can barely be distinguished from
# independent ones (p 0.003 to 0.065); the plants of another posterior move jointly.
#
# Both questions are those of Zhou, Dudeja and Amini (*Statistical guarantees for consensus clustering*, ICLR 2023,
# appendix E). The data are a network of 200 nodes, simulated from a stochastic block model with five blocks. A Gibbs
# sampler finds the blocks and their number, under a Dirichlet process prior. `examples/sample_block_model.py` kept all
# its draws from a random start on: four chains of 1,000 sweeps.

# %%
import matplotlib.pyplot as plt
import numpy as np

import posterior_consensus as pc

tree = pc.load_example("block_model")
draws = pc.as_partition_draws(tree, "z")

# %% [markdown]
# ## The burn-in
#
# The upper panel has the distance of each draw from the one before, here in variation of information (VI). Small steps
# do not prove that a chain has reached the posterior, because a chain that drifts takes small steps, too. The lower
# panel shows how far each draw is from the second half of its chain.

# %%
vi = pc.diagnostics.sequential_distances(draws, loss="vi")
# Figure: VI of each draw to the draw before, and to the second half of its chain: both fall within the first 200
# draws, where a line for each chain ends the burn-in.
axes = vi.plot()

# %% [markdown]
# The rule (MSER-5) discards the initial draws whose removal minimizes the standard error of the mean of the lower
# panel, chain by chain. The distance of the paper, `loss="nmi"`, gives nearly the same.

# %%
vi

# %%
kept = draws.take(vi.kept)
print("all draws: ", pc.diagnose(draws).verdict)
print("after the burn-in: ", pc.diagnose(kept).verdict)

# %% [markdown]
# ## Do nodes change blocks independently?
#
# The test shuffles each node's labels over the draws in one half of the draws, and compares it with the other half. It
# first thins the draws until they are nearly uncorrelated, so that autocorrelation does not count as dependence.

# %%
independence = pc.diagnostics.near_independence(kept, random_seed=1)
independence

# %% [markdown]
# One histogram has the distances between draws, the other the distances from draws to the product of the marginals.
# They overlap, but not fully: the test can just distinguish them. Other random halves give other p-values:

# %%
# Figure: Two overlapping histograms of squared maximum mean discrepancies: from draws to other draws, and from
# draws to the product of the marginals.
ax = independence.plot()

# %%
[pc.diagnostics.near_independence(kept, random_seed=seed).p_value for seed in range(1, 5)]

# %% [markdown]
# In [the posterior of plants](two_answers), whose draws have two modes, the plants of one place move jointly. The
# histograms do not overlap. This is no fault of the draws: the expected loss is over the draws as they are, joint moves
# included. But error rates cannot be taken from a theory in which items err independently.

# %%
plants = pc.diagnostics.near_independence(pc.as_partition_draws(pc.load_example("two_answers")), random_seed=1)
print(plants.verdict)

# %%
# Figure: The same two histograms for the plants, which do not overlap.
ax = plants.plot()

# %% [markdown]
# ## The consensus
#
# It has three blocks: the three smallest of the simulated five are one here, because they have too few links to be
# distinguished. On the left is the network, its nodes in the order of the consensus and, within a block, of the
# simulated blocks. On the right is the posterior similarity matrix.

# %%
best = pc.consensus_partition(kept, random_seed=1, progressbar=False)
best

# %%
observed = tree["observed_data"]
order = np.lexsort((observed["block"].values, best.labels.values))
# Figure: Left: links between the 200 nodes, which are denser within the three blocks. Right: their posterior
# similarity matrix, with the same three blocks outlined.
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
