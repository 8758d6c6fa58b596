# %% [markdown]
# # Which cluster is which, and does this galaxy belong to it?
#
# Two questions that readers ask about a clustering. If another analysis has other clusters: which of them is which? And
# with what probability does an item belong to its cluster?
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
# ## Names that go on
#
# The consensus under Binder's loss has other clusters. `match_clusters` gives each of them the name of the cluster with
# which it shares most galaxies, one to one. What is left over is new.

# %%
binder = pc.consensus_partition(draws, loss="binder", random_seed=1)
matched = pc.match_clusters(binder, best)
display(matched)

# %% [markdown]
# The result is a partition that every function takes. In all figures a name has the same colour.

# %%
ax = pc.plot_data(velocity, best)

# %%
ax = pc.plot_data(velocity, matched)

# %%
ax = pc.plot_alluvial(matched)

# %% [markdown]
# `align_partitions` does this for several partitions in a row, each with the one before it. Here are the best
# partitions into two to six clusters. A cluster keeps its number as long as it lasts, and no number is used twice.

# %%
numbers = pc.loss_by_n_clusters(draws, n_clusters=range(2, 7), random_seed=1)
aligned = pc.align_partitions(numbers.partitions)
print(aligned.in_words())

# %%
ax = pc.plot_alluvial(aligned)

# %% [markdown]
# The same serves for points of time. If the items have names, they may come and go: only the items that two partitions
# share count, and the words say so.

# %%
print(pc.match_clusters(binder.labels[5:], best.labels[:80]).in_words())

# %% [markdown]
# ## The probability of a cluster
#
# Labels switch from draw to draw, and draws have different numbers of clusters. So the clusters of each draw are first
# matched with those of the consensus, again by most galaxies in common. The share of draws in which a galaxy is in the
# matched cluster is its membership probability. Draws also have clusters without a partner: these are "elsewhere".

# %%
membership = pc.membership(draws, best)
display(membership)

# %%
display(membership.probabilities[[0, 7, 40, 46, 77]].to_pandas().round(2))

# %% [markdown]
# Each bar is a galaxy, as population geneticists draw proportions of ancestry. The probability of its own cluster is at
# the bottom.

# %%
ax = pc.plot_membership(membership)

# %% [markdown]
# Much is elsewhere where draws split a cluster of the consensus. That is no defect of the matching: these draws have a
# cluster that the consensus does not have. Standard errors are those of the Monte Carlo sample, from batches of the
# draws of each chain.
#
# A membership is a different number than the mean similarity to the rest of the cluster. The first needs a matching of
# clusters, the second does not. `item_uncertainty` and a summary show both; `membership` is the last column.

# %%
display(pc.item_uncertainty(draws, best).to_dataframe().iloc[[0, 7, 40, 46, 77]].round(2))

# %% [markdown]
# ## Within one mode
#
# The plants of [the tutorial on two modes](two_answers) have two partitions, each with its own share of the posterior.
# A membership over all draws would mix them. `region` gives the draws of one mode. Below are the smallest membership
# over all draws and that within the first mode.

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
