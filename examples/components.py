# %% [markdown]
# # Are these two components one group, and what is the mean of this cluster?
#
# Mixtures of normals cause two problems. They describe a group that is not normal by several components. And the labels
# of components switch from draw to draw, so the draws of one component's parameter mix clusters. This tutorial solves
# both. The data are the velocities of 82 galaxies, in 1,000 km/s, and the model is a mixture of up to twenty normals
# with sampled labels.

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    tree = file.load()
posterior, velocity = tree["posterior"], tree["observed_data"]["velocity"]

# %% [markdown]
# ## How similar are the components?
#
# Two galaxies are similar if the densities of their components are similar. The similarity is one minus the Hellinger
# distance between the two components, averaged over the draws.

# %%
similarity = pc.component_similarity(tree, mean=posterior["mu"], sd=posterior["sigma"])
display(similarity)

# %% [markdown]
# If you have the PyMC model, `pc.component_similarity(model, idata)` finds the components itself, also if the labels
# are marginalized. On average, a draw has eight to nine components with galaxies, which merge into six to seven
# clusters.

# %%
ax = pc.plot_component_similarity(similarity)

# %% [markdown]
# The line is the share of the total distance that lies within clusters. It hardly falls beyond five clusters. The grey
# bars are the distribution over draws of the number of clusters after merging, the dotted line that of the number of
# components.
#
# ## The partition
#
# The result is a similarity matrix. Its loss is Binder's, with the mean similarity as the pair threshold.

# %%
merged = pc.consensus_partition(similarity, loss=pc.binder(tau="mean"), random_seed=1)
by_labels = pc.consensus_partition(tree, loss="binder", random_seed=1)
display(pc.certify(similarity, merged, progressbar=False).status)
ax = pc.plot_alluvial({"Binder, labels": by_labels, "Binder, components": merged})

# %% [markdown]
# How uncertain is it? `partitions` has a partition for each draw, so a credible ball is computed as for labels.

# %%
display(pc.credible_ball(similarity.partitions, merged, loss="vi"))

# %% [markdown]
# ## What is the mean of this cluster?
#
# A cluster has a parameter only in draws that have this cluster. A partial partition has clusters that occur with a
# known probability. Below is the largest set of galaxies that at least half of the draws cluster alike.

# %%
partial = pc.partial_partition(tree, 0.5, random_seed=1)
clusters = pc.cluster_summary(tree, partial, mu=posterior["mu"], sigma=posterior["sigma"])
display(clusters)

# %% [markdown]
# In each of these draws, all galaxies of a cluster are in one component, and the cluster has its parameters. No
# relabelling is needed. Each row has its own effective sample size.

# %%
ax = pc.plot_cluster_summary(clusters, "mu")

# %% [markdown]
# ## Where do the other galaxies go?
#
# `allocation` has each galaxy's probability of each cluster, given the clusters of the assigned galaxies.

# %%
unassigned = clusters.allocation[(clusters.labels < 0).values].to_pandas()
display(unassigned[unassigned.max(axis=1) < 0.7].round(2).head(8))
