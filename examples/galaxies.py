# %% [markdown]
# # Step by step: losses, thresholds, credible balls
#
# `summarize` makes several choices for you. Here we make them one by one, on a classic of Bayesian clustering: the
# velocities of 82 galaxies. Are there groups among them, and how many?
#
# The posterior is that of a Dirichlet process mixture of normals, stored in a small file beside this page.
# `examples/sample_galaxies.py` made it with PyMC: the labels were marginalised out of the likelihood, NUTS sampled
# weights, means and standard deviations, and the labels were then drawn from their exact conditional distribution.

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    tree = file.load()

# %% [markdown]
# ## The draws
#
# `as_partition_draws` takes what a sampler returned, here a DataTree; an `InferenceData`, a Dataset, an array or a
# path will do as well. The names of the labels switch from draw to draw, so each draw is renumbered by first
# appearance: what is left is the partition.

# %%
draws = pc.as_partition_draws(tree, "z")
display(draws)

# %% [markdown]
# Before any summary: do the chains agree?

# %%
display(pc.diagnose(draws))

# %%
ax = pc.plot_n_clusters(draws)
# %% [markdown]
# ## The partition to report
#
# A partition is chosen by a loss. Variation of information (VI), in bits, is the default: it counts what knowing one
# partition does not tell about the other. The search runs from several starts. A run ends where no move of a galaxy and
# no merge of two clusters lowers the expected loss.

# %%
best = pc.consensus_partition(draws, loss="vi", random_seed=1)
display(best)

# %% [markdown]
# The Monte Carlo standard error (MCSE) comes from the chains' effective sample size. It says how well the expected
# loss is known, and with it whether one partition is better than another.

# %% [markdown]
# The galaxies and their clusters. The smaller a galaxy's mean similarity to the rest of its cluster, the smaller is its
# point. Below 1/2 the point is hollow.

# %%
velocity = tree["observed_data"]["velocity"]
ax = pc.plot_data(velocity, best, items=pc.item_uncertainty(draws, best))
ax.set_xlabel("velocity (1,000 km/s)")

# %% [markdown]
# Binder's loss counts the pairs of items that one partition joins and the other separates. It tends to put uncertain
# items into clusters of their own.

# %%
binder = pc.consensus_partition(draws, loss="binder", random_seed=1)
display(binder)

# %% [markdown]
# Each loss prefers its own partition. Both are evaluated on the same draws, so the difference of the two expected
# losses has a standard error of its own.

# %%
display(pc.compare_partitions(draws, {"vi": best, "binder": binder}, loss="vi"))

# %%
ax = pc.plot_alluvial({"vi": best, "binder": binder})

# %% [markdown]
# How coarse should the answer be? Binder's loss has a dial, the pair threshold tau: two galaxies alone are joined where
# they are together with a probability above tau. Its default is 1/2. The path shows what other values give; its line is
# thick where the partition stays the same. `pair_threshold` calibrates tau on the draws, so that tau separates the
# pairs within clusters from those between.

# %%
path = pc.loss_path(draws, loss="binder", random_seed=1)
threshold = pc.consensus.pair_threshold(draws, random_seed=1)
ax = pc.plot_loss_path(path)
ax.axvline(threshold.tau, color="black", linestyle=":", label=f"calibrated, tau = {threshold.tau:.2f}")
ax.legend(frameon=False)
display(threshold)

# %% [markdown]
# The calibrated threshold lies on the longest plateau. This is the distance, in bits, between its partition and the one
# that VI chose:

# %%
display(pc.partition_loss(best, threshold))

# %% [markdown]
# ## How often two galaxies are together
#
# The posterior similarity matrix does not depend on the names of the labels, or on a loss. Outlines mark the clusters
# of the consensus.

# %%
psm = pc.posterior_similarity_matrix(draws)
ax = pc.plot_psm(psm, best)
# %% [markdown]
# ## How sure is it?
#
# The credible ball is the smallest ball around the consensus that holds 95 % of the posterior. Its bounds are the
# partitions farthest out: of all, of those with the fewest clusters, and of those with the most.

# %%
ball = pc.credible_ball(draws, best, prob=0.95)
display(ball)

# %%
ax = pc.plot_credible_ball(ball)
# %% [markdown]
# Item by item: what is a galaxy's mean posterior similarity to the rest of its cluster? Which other cluster is nearest,
# and what is the mean similarity to that one?

# %%
items = pc.item_uncertainty(draws, best)
display(items)

# %%
ax = pc.plot_item_uncertainty(items)
# %% [markdown]
# ## Keep it with the posterior
#
# The results go back to where the draws came from, as a group that NetCDF and Zarr keep.

# %%
tree = pc.attach(tree, best, ball, items)
display(tree["consensus"])
