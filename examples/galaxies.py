# %% [markdown]
# # Step by step: losses, thresholds, credible balls
#
# `summarize` makes several choices for you. Here we make them one by one, on a classic of Bayesian clustering: the
# velocities of 82 galaxies. Are there groups among them, and how many?
#
# The posterior comes from a Dirichlet process mixture of normals, and is stored in a small file.
# `examples/sample_galaxies.py` made it with PyMC: the labels were marginalized out of the likelihood, NUTS sampled
# weights, means and standard deviations, and the labels were then sampled from their exact conditional distribution.

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    tree = file.load()

# %% [markdown]
# ## The draws
#
# `as_partition_draws` takes the output of a sampler, here a DataTree; an `InferenceData`, a Dataset, an array or a path
# will do as well. The names of the labels switch from draw to draw, so each draw is renumbered by first appearance.
# Equal partitions then have equal labels.

# %%
draws = pc.as_partition_draws(tree, "z")
display(draws)

# %% [markdown]
# Before any summary: do the chains agree? `diagnose` computes R-hat and the effective sample size (ESS) of scalar
# summaries of the partition, such as the number of clusters and the distance to some draws, and of the partition as a
# whole. An R-hat of at most 1.01 and an ESS of at least 100 for each chain are the usual limits.

# %%
display(pc.diagnose(draws))

# %%
ax = pc.plot_n_clusters(draws)
# %% [markdown]
# ## The partition to report
#
# We report the partition of minimum expected loss. The loss is a distance between partitions. Its posterior mean is the
# expected distance from the true partition. The default is the variation of information (VI), in bits: the information
# in either partition that the other does not contain. The search runs from several starts. A run ends when no move of a
# galaxy and no merge of two clusters lowers the expected loss.

# %%
best = pc.consensus_partition(draws, loss="vi", random_seed=1)
display(best)

# %% [markdown]
# The Monte Carlo standard error (MCSE) of the expected loss comes from the chains' effective sample size.

# %% [markdown]
# The figure shows the galaxies and their clusters. The posterior similarity of two galaxies is the share of draws that
# put them in one cluster. The smaller a galaxy's mean similarity to the rest of its cluster, the smaller is its point.
# Below 1/2 the point is hollow.

# %%
velocity = tree["observed_data"]["velocity"]
ax = pc.plot_data(velocity, best, items=pc.item_uncertainty(draws, best))
ax.set_xlabel("velocity (1,000 km/s)")

# %% [markdown]
# Binder's loss counts the pairs of items that one partition joins and the other separates. It tends to put uncertain
# items into separate small clusters.

# %%
binder = pc.consensus_partition(draws, loss="binder", random_seed=1)
display(binder)

# %% [markdown]
# Each loss prefers its own partition. Both are evaluated on the same draws, so the difference of the two expected
# losses has its own, smaller standard error. The column `clear` marks differences larger than two standard errors.

# %%
display(pc.compare_partitions(draws, {"vi": best, "binder": binder}, loss="vi"))

# %%
ax = pc.plot_alluvial({"vi": best, "binder": binder})

# %% [markdown]
# How coarse should the partition be? Binder's loss has a tuning parameter, the pair threshold tau: two galaxies
# considered alone are joined if their posterior similarity exceeds tau. Its default is 1/2. The path shows the
# partitions for other values; its line is thick where the partition does not change. `pair_threshold` calibrates tau on
# the draws, so that tau separates the pairs within clusters from the pairs between clusters.

# %%
path = pc.loss_path(draws, loss="binder", random_seed=1)
threshold = pc.consensus.pair_threshold(draws, random_seed=1)
ax = pc.plot_loss_path(path)
ax.axvline(threshold.tau, color="black", linestyle=":", label=f"calibrated, tau = {threshold.tau:.2f}")
ax.legend(frameon=False)
display(threshold)

# %% [markdown]
# The interval `consistent` has the mean similarities of pairs between and within clusters as its ends. The calibrated
# threshold lies on the longest plateau. This is the distance, in bits, between its partition and the one chosen under
# VI:

# %%
display(pc.partition_loss(best, threshold))

# %% [markdown]
# ## The posterior similarity of two galaxies
#
# The posterior similarity matrix does not depend on the names of the labels, or on a loss. Outlines mark the clusters
# of the consensus.

# %%
psm = pc.posterior_similarity_matrix(draws)
ax = pc.plot_psm(psm, best)
# %% [markdown]
# ## How certain is it?
#
# The credible ball is the smallest ball around the consensus that contains 95% of the posterior. Its bounds are the
# draws in the ball that are farthest from the consensus: the farthest of all (horizontal), of the draws with the fewest
# clusters (upper vertical), and of the draws with the most clusters (lower vertical).

# %%
ball = pc.credible_ball(draws, best, prob=0.95)
display(ball)

# %%
ax = pc.plot_credible_ball(ball)
# %% [markdown]
# For each galaxy, the next table has its mean posterior similarity to the rest of its cluster, the nearest other
# cluster, and the mean similarity to that one. The margin is their difference. Galaxy 77 has a negative margin: on
# average it is more similar to another cluster than to its own. Yet no move of it lowers the expected VI, which is not
# a sum over pairs.

# %%
items = pc.item_uncertainty(draws, best)
display(items)

# %%
ax = pc.plot_item_uncertainty(items)
# %% [markdown]
# ## Keep it with the posterior
#
# `attach` stores the results with the posterior, as a group that NetCDF and Zarr files keep.

# %%
tree = pc.attach(tree, best, ball, items)
display(tree["consensus"])
