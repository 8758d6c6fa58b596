# %% [markdown]
# # Are these two components one group, and what is the mean of this cluster?
#
# Mixtures of normals have two habits. They describe a group that is not normal by several components. And the names of
# components switch from draw to draw, so that a column of parameters mixes clusters. This tutorial answers both for the
# velocities of 82 galaxies, in 1,000 km/s, and a mixture of up to twenty normals with sampled labels.

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
# Two galaxies are similar if their components are, whatever the labels. The similarity is one less the Hellinger
# distance of the two components, averaged over the draws.

# %%
similarity = pc.component_similarity(tree, mean=posterior["mu"], sd=posterior["sigma"])
display(similarity)

# %% [markdown]
# With the PyMC model at hand, `pc.component_similarity(model, idata)` finds the components itself, also if the labels
# are marginalized. A draw has eight to nine components with galaxies, which are six to seven clusters after merging.

# %%
ax = pc.plot_component_similarity(similarity)

# %% [markdown]
# The line is the share of all distance that is left within clusters. It hardly falls beyond five clusters. Grey bars
# are the number of clusters of each draw after merging, dots the number of components.
#
# ## The partition
#
# The result is a similarity of pairs. Its loss is Binder's with the mean similarity as the pair threshold.

# %%
merged = pc.consensus_partition(similarity, loss=pc.binder(tau="mean"), random_seed=1)
by_labels = pc.consensus_partition(tree, loss="binder", random_seed=1)
display(pc.certify(similarity, merged, progressbar=False).status)
ax = pc.plot_alluvial({"Binder, labels": by_labels, "Binder, components": merged})

# %% [markdown]
# How sure is it? `partitions` has a partition for each draw, so that a credible ball is as for labels.

# %%
display(pc.credible_ball(similarity.partitions, merged, loss="vi"))

# %% [markdown]
# ## What is the mean of this cluster?
#
# A parameter needs a cluster that the draws have. A partial partition has such clusters with known probability. Here
# are the most galaxies that half of the posterior clusters alike.

# %%
partial = pc.partial_partition(tree, 0.5, random_seed=1)
clusters = pc.cluster_summary(tree, partial, mu=posterior["mu"], sigma=posterior["sigma"])
display(clusters)

# %% [markdown]
# In each of these draws, a cluster's parameters are those of the component of any of its galaxies. No relabelling is
# needed. Each row has its own effective number of draws.

# %%
ax = pc.plot_cluster_summary(clusters, "mu")

# %% [markdown]
# ## Where do the other galaxies go?
#
# `allocation` has the probability of each cluster, given that the assigned galaxies are clustered as found.

# %%
unassigned = clusters.allocation[(clusters.labels < 0).values].to_pandas()
display(unassigned[unassigned.max(axis=1) < 0.7].round(2).head(8))
