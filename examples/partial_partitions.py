# %% [markdown]
# # Which items are clustered with confidence? Partial partitions
#
# A consensus assigns every item to a cluster, including items whose cluster the posterior leaves uncertain. Which items
# can be clustered with confidence, the rest unassigned? A partial partition answers this: it assigns some items to
# clusters, and leaves the others unassigned.
#
# The posterior is that of a Dirichlet process mixture for the velocities of 82 galaxies, as in
# [the tutorial on losses](galaxies). No partition of all 82 galaxies is probable: there are too many.

# %%
import numpy as np
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    tree = file.load()
draws = pc.as_partition_draws(tree, "z")
velocity = tree["observed_data"]["velocity"]

# %% [markdown]
# ## The largest set of galaxies clustered identically in half of the posterior
#
# `partial_partition` searches for the largest set of items whose joint clustering has posterior probability at least
# 0.5: at least half of the draws agree with it. A draw agrees if it partitions these items exactly so, for any clusters
# of the others. The probability printed is cross-validated, see below.

# %%
partial = pc.partial_partition(draws, 0.5, random_seed=1)
display(partial)

# %% [markdown]
# `labels` has -1 for the unassigned galaxies. These are the assigned ones:

# %%
display(partial.labels[partial.labels >= 0])

# %%
ax = pc.plot_data(velocity, partial)
ax.set_xlabel("velocity (1,000 km/s)")

# %% [markdown]
# The seven slow galaxies are one cluster, without any other assigned galaxy. Thirteen of the galaxies near 20 are
# another. The posterior does not determine where this cluster ends, and whether the galaxies above 22 belong to it.
#
# In the similarity matrix the assigned galaxies come first, outlined by cluster. The unassigned ones are paler.

# %%
ax = pc.plot_psm(draws, partial)

# %% [markdown]
# ## How fast does the probability fall?
#
# The curve has the largest share of draws found for each number of galaxies. The area under it summarizes the certainty
# of a posterior: 1 if all draws are the same partition. The bar near the point is the cross-validated
# probability.

# %%
ax = pc.plot_partial_partition(partial)
display(partial.area)

# %% [markdown]
# With a higher probability, fewer galaxies remain. At 0.95 there are five, each in its own cluster: the only conclusion
# with this probability is that no two of them are co-clustered. A bound shows that no set is larger.

# %%
for prob in (0.5, 0.8, 0.95):
    print(pc.partial_partition(draws, prob, random_seed=1).in_words())

# %%
display(pc.partial_partition(draws, 0.95, random_seed=1))

# %% [markdown]
# ## Is the probability right?
#
# The set was selected because it is probable in these draws, so its share of them, `search_probability`, is too high.
# `probability` is cross-validated: for each chain, a search of the other chains selects a set of as many items. Here
# the first two chains select, and the others evaluate.

# %%
chosen = pc.partial_partition(draws.isel(chain=[0, 1]), 0.5, random_seed=1)
sure = np.flatnonzero(chosen.labels >= 0)
others = pc.as_partition_draws(draws.isel(chain=[2, 3]).labels[:, sure])
agree = np.all(others.labels == chosen.labels.values[sure], axis=1)
display((chosen.search_probability, chosen.probability, float(agree.mean())))

# %% [markdown]
# ## Completing the partition
#
# With `complete`, the other galaxies are assigned to minimize the expected loss, and the assigned ones stay. Here the
# result is the consensus, because it agrees with the partial partition.

# %%
whole = pc.partial_partition(draws, 0.5, complete="vi", random_seed=1)
best = pc.consensus_partition(draws, loss="vi", random_seed=1)
display((whole.expected_loss, best.expected_loss, pc.partition_loss(whole.completion, best)))
