# %% [markdown]
# # From a posterior to a partition one can report
#
# The velocities of 82 galaxies are a classic of Bayesian clustering: are there groups among them, and how many? We
# start where a sampler ends, with the posterior of a Dirichlet process mixture of normals, and end with a partition,
# its expected loss, what else the posterior holds credible, and the galaxies that could be elsewhere.
#
# The posterior is a small file beside this page. `examples/sample_galaxies.py` made it with PyMC: the labels were
# marginalised out of the likelihood, NUTS sampled weights, means and standard deviations, and the labels were then
# drawn from their exact conditional distribution. Sampling the labels themselves mixes badly on these data.

# %%
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from arviz_stats.base import array_stats

import posterior_consensus as pc

tree = xr.open_datatree("data/galaxies.nc", engine="h5netcdf").load()
tree["posterior"]["z"]

# %% [markdown]
# ## The draws
#
# `as_partition_draws` takes what a sampler returned, here a DataTree; an `InferenceData`, a Dataset, an array or a
# path will do as well. The names of the labels switch from draw to draw, so each draw is renumbered by first
# appearance: what is left is the partition.

# %%
draws = pc.as_partition_draws(tree, "z")
draws

# %% [markdown]
# Before any summary: do the chains agree? The number of clusters is one scalar; the probability that two galaxies are
# together, chain by chain, is 3,321 of them, and the largest gap between two chains is easy to read.

# %%
chains = [draws.labels[rows] for rows in draws.chains]
matrices = [pc.posterior_similarity_matrix(chain).values for chain in chains]
n_clusters = draws.n_clusters.reshape(len(chains), -1)
rhat = array_stats.rhat(n_clusters, chain_axis=0, draw_axis=1)
ess = array_stats.ess(n_clusters, chain_axis=0, draw_axis=1)

print(f"number of clusters: R-hat {float(rhat):.3f}, ESS {float(ess):.0f}")
print(f"largest gap between chains in P(together): {np.ptp(matrices, axis=0).max():.3f}")

# %%
ax = pc.plot_n_clusters(draws)
# %% [markdown]
# ## The partition to report
#
# A partition is chosen by a loss. Variation of information (VI), in bits, is the default: it counts what knowing one
# partition does not tell about the other. The search ends where no galaxy's move and no merger of two clusters lowers
# the expected loss, from several starts.

# %%
best = pc.consensus_partition(draws, loss="vi", random_seed=1)
best

# %% [markdown]
# The Monte Carlo standard error (MCSE) comes from the chains' effective sample size. It says how well the expected
# loss is known, and with it whether one partition is better than another.

# %%
velocity = tree["observed_data"]["velocity"]
fig, ax = plt.subplots(figsize=(7, 1.6), layout="constrained")
colours = plt.get_cmap("tab10")(best.labels)
ax.scatter(velocity, np.zeros(82), c=colours, marker="|", s=600)
ax.set(xlabel="velocity (1,000 km/s)", yticks=[])
ax.spines[["top", "left", "right"]].set_visible(False)

# %% [markdown]
# Binder's loss counts pairs of items that two partitions treat differently. It tends to put uncertain items into
# clusters of their own.

# %%
binder = pc.consensus_partition(draws, loss="binder", random_seed=1)
binder

# %%
pc.expected_loss(draws, [best, binder], loss="vi").to_dataframe()

# %% [markdown]
# How coarse should the answer be? Binder's loss has a dial, the pair threshold tau: on their own, two galaxies are
# joined where they are together with a probability above tau. Its default is 1/2. The path shows what other values
# give, thick where the partition stays the same; `pair_threshold` calibrates tau on the draws, so that it tells the
# pairs within clusters from those between.

# %%
path = pc.loss_path(draws, "binder", random_seed=1)
threshold = pc.pair_threshold(draws, random_seed=1)
ax = pc.plot_loss_path(path)
ax.axvline(threshold.tau, color="black", linestyle=":", label=f"calibrated, tau = {threshold.tau:.2f}")
ax.legend(frameon=False)
threshold

# %% [markdown]
# The calibrated threshold lies on the longest plateau, and its partition is the one that VI chose.

# %%
pc.partition_loss(best, threshold)

# %% [markdown]
# ## How often two galaxies are together
#
# The posterior similarity matrix does not depend on labels or on a loss. Outlined are the clusters of the consensus.

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
ball

# %%
ax = pc.plot_credible_ball(ball)
# %% [markdown]
# Item by item: how probably a galaxy is with the rest of its cluster, and with which other cluster else.

# %%
items = pc.item_uncertainty(draws, best)
items

# %%
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
ax.plot(velocity, items.probability, "o", markersize=3, label="own cluster")
ax.plot(velocity, items.nearest_probability, "o", markersize=3, label="nearest other cluster")
ax.set(xlabel="velocity (1,000 km/s)", ylabel="probability", ylim=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
legend = ax.legend(frameon=False)
# %% [markdown]
# ## Keep it with the posterior
#
# The results go back to where the draws came from, as a group that NetCDF and Zarr keep.

# %%
tree = pc.attach(tree, best, ball, items)
tree["consensus"]
