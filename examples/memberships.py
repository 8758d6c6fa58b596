# %% [markdown]
# # Which cluster is which, and does this galaxy belong to it?
#
# Readers ask two questions about a partition. Another analysis gives other clusters: which of them corresponds to
# which? And with what probability does an item belong to its cluster?
#
# The first posterior is that of [the tutorial on losses](galaxies), for the velocities of 82 galaxies.

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    tree = file.load()
draws = pc.as_partition_draws(tree, "z")
velocity = tree["observed_data"]["velocity"]
best = pc.consensus_partition(draws, loss="vi", random_seed=1)
best = best.with_names([f"group {k}" for k in range(1, best.n_clusters + 1)])
display(best)

# %% [markdown]
# ## One name for a cluster in several partitions
#
# The consensus under Binder's loss has other clusters. `align_partitions` matches them one to one with the clusters
# above, such that matched clusters share the most galaxies in total. A matched cluster gets the name of its partner;
# any other cluster gets a new name.

# %%
binder = pc.consensus_partition(draws, loss="binder", random_seed=1)
matched = pc.align_partitions({"vi": best, "binder": binder})["binder"]
display(matched)

# %% [markdown]
# Every function takes the result as a partition. A name has the same colour in all figures.

# %%
ax = pc.plot_data(velocity, best)

# %%
ax = pc.plot_data(velocity, matched)

# %%
ax = pc.plot_alluvial(matched)

# %% [markdown]
# Each of several partitions is matched with the one before it. Below are the best partitions into two
# to six clusters. A cluster keeps its number as long as it has a match. No number is used for another cluster.

# %%
numbers = pc.loss_by_n_clusters(draws, n_clusters=range(2, 7), random_seed=1)
aligned = pc.align_partitions(numbers.partitions)
print(aligned.in_words())

# %%
ax = pc.plot_alluvial(aligned)

# %% [markdown]
# Partitions at several points of time are aligned in the same way. If the items have names, they may come and go. Then
# only the items that two partitions share count, and the text notes it.

# %%
print(pc.align_partitions([best.labels[:80], binder.labels[5:]]).in_words())

# %% [markdown]
# ## The probability of a cluster
#
# Labels switch from draw to draw, and draws have different numbers of clusters. So the clusters of each draw are first
# matched with those of the consensus, again by the galaxies in common. A galaxy's probability of a consensus cluster is
# the share of draws in which it is in the cluster matched with it. A draw's clusters without a partner are "elsewhere".

# %%
membership = pc.membership(draws, best)
display(membership)

# %%
display(membership.probabilities[[0, 7, 40, 46, 77]].to_pandas().round(2))

# %% [markdown]
# Each bar is a galaxy, as in plots of ancestry proportions in population genetics. The probability of its own cluster
# is at the bottom.

# %%
ax = pc.plot_membership(membership)

# %% [markdown]
# A galaxy is often elsewhere if draws split its consensus cluster. This is not a defect of the matching: these draws
# have a cluster that the consensus does not have. The standard errors are Monte Carlo errors, from batches of the draws
# of each chain.
#
# The membership probability differs from the mean similarity to the rest of the cluster. The first needs a matching of
# clusters, the second does not. `item_uncertainty` and a summary show both; `membership` is the last column.

# %%
display(pc.item_uncertainty(draws, best).to_dataframe().iloc[[0, 7, 40, 46, 77]].round(2))

# %% [markdown]
# ## Within one mode
#
# The posterior of [the tutorial on two modes](two_answers), for plants, has two modes. Membership probabilities over
# all draws mix them. `region` gives the draws of one mode. For each plant, take the probability of its own cluster.
# Below is the smallest over all draws, and the smallest within the first mode.

# %%
with xr.open_datatree(DATA / "two_answers.nc", engine="h5netcdf") as file:
    plants = pc.as_partition_draws(file.load())
found = pc.particles(plants, random_seed=1)
over_all = pc.membership(plants, found.partitions[0])
within = pc.membership(found.region(0), found.partitions[0])
display((float(over_all.own.min()), float(within.own.min())))

# %%
ax = pc.plot_membership(over_all)

# %%
ax = pc.plot_membership(within)
