# %% [markdown]
# # Does this item belong to its cluster, and which items are clustered with confidence?
#
# A consensus partition assigns every item, also those that the posterior leaves open. `pc.membership` is the
# probability that an item belongs to its cluster, `pc.partial_partition` the largest set of items whose joint
# clustering has a given probability, `pc.cluster_summary` has the parameters of these clusters.
#
# Of 30 irises, one is in its cluster with probability 0.49, all others with more than 0.9. The other 29 are clustered
# exactly as found with probability 0.64. Thirteen flowers remain at probability 0.95.
#
# The posterior is that of a mixture of up to six normals with sampled labels, for petal length and width.

# %%
import numpy as np

import posterior_consensus as pc

tree = pc.load_example("iris")
draws = pc.as_partition_draws(tree)
petal = tree["observed_data"]["petal"]
best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
best

# %% [markdown]
# ## The probability of a cluster
#
# Labels switch from draw to draw. So `membership` first matches the clusters of each draw one to one with those of the
# consensus, by the flowers in common. The probability of a consensus cluster is the share of draws in which the flower
# is in the matched cluster. A draw's clusters without a partner are "elsewhere": that draw has a cluster more.

# %%
membership = pc.membership(draws, best)
membership

# %%
# Figure: Stacked probabilities of each flower to be in each of three clusters; one flower is in its cluster with
# about 0.5.
ax = membership.plot()

# %% [markdown]
# This probability needs matched clusters. The mean similarity to the rest of the cluster needs none.
# `pc.item_uncertainty` has both, and the nearest other cluster.

# %%
pc.item_uncertainty(draws, best).to_dataframe().sort_values("membership").head(4).round(2)

# %% [markdown]
# ## The largest set of flowers clustered alike in half of the posterior
#
# A draw agrees with a partial partition if it partitions the assigned flowers exactly so, wherever the others are.
# `partial_partition` searches in half of the draws for the largest set with which at least the share `prob` agrees, and
# estimates its probability in the other half. Unassigned flowers have the label -1, and are small and grey in the
# figure.

# %%
partial = pc.partial_partition(draws, 0.5, random_seed=1)
partial

# %%
# Figure: Petal length and width of the flowers, coloured by three clusters; one flower between medium and large is
# unassigned.
ax = pc.plot_data(petal, partial)

# %% [markdown]
# With a higher probability, fewer flowers remain.

# %%
for prob in (0.5, 0.8, 0.95):
    print(pc.partial_partition(draws, prob, random_seed=1).in_words())

# %% [markdown]
# The curve has the largest share found for each number of flowers. The area under it is 1 if all draws are one
# partition.

# %%
# Figure: Share of the choosing draws that agree on a set of flowers, by its size: 1 for small sets, 0.63 for the 29
# flowers chosen.
ax = partial.plot()

# %% [markdown]
# ## Is the probability right?
#
# Chains 0 and 2 chose the set because it is probable in them, so its share of their draws, `search_probability`, tends
# to be too high (not here). `probability` is the share of the draws of chains 1 and 3. By hand:

# %%
assigned = np.flatnonzero(partial.labels >= 0)
others = pc.as_partition_draws(draws.isel(chain=[1, 3]).labels[:, assigned])
agree = np.all(others.labels == pc.as_partition_draws([partial.labels.values[assigned]]).labels[0], axis=1)
print(f"in the choosing chains {partial.search_probability:.3f}, in the others {partial.probability:.3f}")
print(f"by hand {agree.mean():.3f}")

# %% [markdown]
# `complete` assigns the remaining flowers so that the expected loss is smallest. The result is the consensus here.

# %%
whole = pc.partial_partition(draws, 0.5, complete="vi", random_seed=1)
print(f"distance to the consensus: {float(pc.partition_loss(whole.completion, best)):.3f} bits")

# %% [markdown]
# ## The parameters of a cluster
#
# A cluster has parameters only in the draws that have this cluster. In each draw that agrees with the partial
# partition, the flowers of a cluster are in one component. So `cluster_summary` needs no relabelling. Each row has its
# own effective sample size.

# %%
mu = tree["posterior"]["mu"].assign_attrs(units="standardized")
clusters = pc.cluster_summary(tree, partial, mu=mu, first_label=0)
clusters

# %%
# Figure: Mean petal length of each cluster with intervals; the three intervals do not overlap.
ax = clusters.plot()

# %% [markdown]
# Given these clusters, where does the unassigned flower go?

# %%
clusters.allocation[(clusters.labels < 0).values].to_pandas().round(2)
