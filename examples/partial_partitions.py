# %% [markdown]
# # What is sure: partial partitions
#
# A consensus puts every item into a cluster, also those that the posterior cannot place. The other way round: which
# items are clustered so surely that one can say so, and leave the rest open? That is a partial partition: sure items
# in clusters, the others open.
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
# ## The most galaxies that are clustered alike in half of the posterior
#
# `partial_partition` finds the largest set of items, with a partition of it, that at least this share of the draws
# agrees on. A draw agrees if it puts exactly these items together and exactly these apart, whatever it does with the
# others.

# %%
partial = pc.partial_partition(draws, 0.5, random_seed=1)
display(partial)

# %% [markdown]
# `labels` has -1 for the galaxies that are left open. These are the sure ones:

# %%
display(partial.labels[partial.labels >= 0])

# %%
ax = pc.plot_data(velocity, partial)
ax.set_xlabel("velocity (1,000 km/s)")

# %% [markdown]
# The seven slow galaxies are one cluster, and no other sure galaxy is in it. Thirteen of those near 20 are one as well.
# Where this cluster ends, and whether those above 22 are one cluster with it, the posterior leaves open.
#
# In the similarity matrix the sure galaxies come first, outlined by cluster. The open ones are paler.

# %%
ax = pc.plot_psm(draws, partial)

# %% [markdown]
# ## How fast does it become unsure?
#
# The curve has the largest probability found for each number of galaxies. Its area is one number for how sure a
# posterior is: 1 if all draws are the same partition.

# %%
ax = pc.plot_partial_partition(partial)
display(partial.area)

# %% [markdown]
# With more probability asked for, fewer galaxies are left. At 0.95 there are five, each in a cluster of its own: all
# that is as sure as this is that no two of them are together. A bound shows that no set is larger.

# %%
for prob in (0.5, 0.8, 0.95):
    print(pc.partial_partition(draws, prob, random_seed=1).in_words())

# %%
display(pc.partial_partition(draws, 0.95, random_seed=1))

# %% [markdown]
# ## Is the probability right?
#
# The set was chosen because it is probable in these draws. So its probability is a little too high. Draws that had no
# part in the choice give a fair one: here the first two chains choose, and the others judge.

# %%
chosen = pc.partial_partition(draws.isel(chain=[0, 1]), 0.5, random_seed=1)
sure = np.flatnonzero(chosen.labels >= 0)
others = pc.as_partition_draws(draws.isel(chain=[2, 3]).labels[:, sure])
agree = np.all(others.labels == chosen.labels.values[sure], axis=1)
display((chosen.probability, float(agree.mean())))

# %% [markdown]
# ## A whole partition that keeps what is sure
#
# With `complete`, the open galaxies go where the expected loss is least, and the sure ones stay. Here that is the
# consensus itself: it agrees with what is sure.

# %%
whole = pc.partial_partition(draws, 0.5, complete="vi", random_seed=1)
best = pc.consensus_partition(draws, loss="vi", random_seed=1)
display((whole.expected_loss, best.expected_loss, pc.partition_loss(whole.completion, best)))
