# %% [markdown]
# # A posterior with two modes
#
# A consensus is a single partition. Some posteriors have two modes, and no single partition shows this. Here are 96
# plants from four places, with two measured traits. We fit a mixture of three normals to sort them into species. The
# plants of the valley lie between the coast and the mountains: they could belong to either species, all of them
# jointly. The data are simulated, and `examples/sample_two_answers.py` samples the posterior in half a minute.

# %%
from collections import Counter

import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "two_answers.nc", engine="h5netcdf") as file:
    tree = file.load()
draws = pc.as_partition_draws(tree)
best = pc.consensus_partition(draws, random_seed=1)
display(best)

# %%
ax = pc.plot_data(tree["observed_data"]["traits"], best, items=pc.item_uncertainty(draws, best))

# %% [markdown]
# `clusters` has the plants of each cluster by name, `members(k)` the plants of one. The next output counts their
# places. The valley is in the cluster of the coast, and so are four plants of the mountains.

# %%
display([dict(Counter(name.split()[0] for name in plants)) for plants in best.clusters.values()])

# %% [markdown]
# ## No diagnostic warns
#
# The chains agree, as they should: each of them switches between the two modes many times.

# %%
display(pc.diagnose(draws, best))

# %% [markdown]
# The credible ball is large, but does not show why. It is centred on one mode and reaches the other, so that it
# contains both, and every partition that is no farther from the first.

# %%
ball = pc.credible_ball(draws, best)
display(ball)

# %% [markdown]
# The distances between the draws and its centre have two peaks and a valley between them. Most draws are either near
# the centre or near the edge.

# %%
axes = ball.distances.plot.hist(bins=20)

# %% [markdown]
# The similarity matrix shows which plants are uncertain: the plants of the valley are co-clustered with the coast in
# more than half of the draws, and with the mountains in the others. It does not show whether each plant switches
# separately or all of them jointly.

# %%
ax = pc.plot_psm(draws, best)

# %% [markdown]
# ## Particles
#
# `particles` finds a few weighted partitions, the particles, that are nearest to the posterior. There are as many as
# modes: groups of draws with a valley between them.

# %%
found = pc.particles(draws, random_seed=1)
display(found)

# %% [markdown]
# There are two modes. Report both partitions, with their weights and standard errors. Every chain visits both. If each
# chain stayed in one mode, the weights would be meaningless.

# %%
display(found.by_chain.to_pandas().round(2))

# %% [markdown]
# The modes differ in the valley, and in the four plants of the mountains. The next table shows the mean contribution of
# a plant of each place to the distance between the two partitions, in bits. The other plants of coast and mountains
# contribute, too, because their co-members change.

# %%
shares = found.contributions(0, 1)
place = xr.DataArray([name.split()[0] for name in shares["plant"].values], dims="plant", name="place")
display(shares.groupby(place).mean().to_series().round(3))

# %%
axes = pc.plot_particles(found)

# %%
ax = pc.plot_alluvial(found)

# %% [markdown]
# Within each mode, little is uncertain. Here is the similarity matrix of the draws nearest to the second. `region`
# gives the draws themselves, for any other function.

# %%
ax = pc.plot_psm(found.similarity(1), found.partitions[1])

# %% [markdown]
# The map of the draws has two clouds, coloured by mode.

# %%
ax = pc.plot_draws_map(draws, particles=found)

# %% [markdown]
# ## Would another number of species help?
#
# The model has three species in every draw, and three is the best number. A fourth cluster would raise the expected
# loss little, but it is a single plant: under this model the valley is never a separate cluster.

# %%
numbers = pc.loss_by_n_clusters(draws, n_clusters=range(1, 7), random_seed=1)
display(numbers)

# %%
axes = pc.plot_loss_by_n_clusters(numbers)

# %% [markdown]
# ## Another model
#
# The same model with four species has been sampled, too. How far is its posterior from the first, and which plants
# differ most?

# %%
four = pc.as_partition_draws(tree, group="four_species")
comparison = pc.compare_posteriors(draws, four, names=("three species", "four species"), random_seed=1)
display(comparison)

# %% [markdown]
# The plants of the valley lose more than twenty co-members each. Both modes of the first model correspond to the single
# mode of the second, in which the valley is a separate species.

# %%
display(comparison.transport.to_pandas().round(2))

# %%
axes = pc.plot_posterior_comparison(comparison, best)

# %%
print(pc.particles(four, random_seed=1).verdict)
