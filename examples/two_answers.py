# %% [markdown]
# # A posterior with two answers
#
# A consensus partition is one answer. Some posteriors have two, and no one partition says so. Here are 96 plants
# from four places, with two measured traits. A mixture of three normals is to sort them into species. The plants of
# the valley lie between those of the coast and those of the mountains: they could be of either species, all of them
# at once. The data are made up, and `examples/sample_two_answers.py` samples the posterior in half a minute.

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
# `clusters` has the plants of each cluster by name, `members(k)` those of one. Here are the places that they are from.
# The valley goes with the coast, and so do four plants of the mountains.

# %%
display([dict(Counter(name.split()[0] for name in plants)) for plants in best.clusters.values()])

# %% [markdown]
# ## Nothing warns
#
# The chains agree, as they should: each of them goes back and forth between the two answers many times.

# %%
display(pc.diagnose(draws, best))

# %% [markdown]
# The credible ball is large, and that is all it says. It is centred on one answer and reaches to the other, so that
# it holds both, and everything that is no farther from the first than the second is.

# %%
ball = pc.credible_ball(draws, best)
display(ball)

# %% [markdown]
# The distances of the draws from its center have two humps and a valley between them. Most draws are either near the
# center or near the edge.

# %%
axes = ball.distances.plot.hist(bins=20)

# %% [markdown]
# The similarity matrix shows who is in doubt: the plants of the valley are with those of the coast in more than half
# of the draws, and with those of the mountains in the others. It cannot tell whether each plant decides for itself or
# all of them go together.

# %%
ax = pc.plot_psm(draws, best)

# %% [markdown]
# ## Particles
#
# `particles` finds the few weighted partitions that are nearest to the posterior. Their number is that of the modes:
# groups of draws with a valley between them. Each mode is an answer.

# %%
found = pc.particles(draws, random_seed=1)
display(found)

# %% [markdown]
# Two answers, then, and this is how to report them: with their weights and the standard errors of these. Every chain
# visits both. If each chain had an answer of its own, the weights would mean nothing.

# %%
display(found.by_chain.to_pandas().round(2))

# %% [markdown]
# What differs is the valley, and those four. Here is what a plant of each place contributes to the distance between
# the two answers, in bits, on average. The other plants of coast and mountains contribute too: their company changes.

# %%
shares = found.contributions(0, 1)
place = xr.DataArray([name.split()[0] for name in shares["plant"].values], dims="plant", name="place")
display(shares.groupby(place).mean().to_series().round(3))

# %%
axes = pc.plot_particles(found)

# %%
ax = pc.plot_alluvial(found)

# %% [markdown]
# Within each answer, little is open. Here is the similarity matrix of the draws nearest to the second.

# %%
ax = pc.plot_psm(found.similarity(1), found.partitions[1])

# %% [markdown]
# The map of the draws has two clouds, here in the colours of the answers.

# %%
ax = pc.plot_draws_map(draws, particles=found)

# %% [markdown]
# ## Would another number of species help?
#
# The model has three species in every draw, and three is the best number. A fourth cluster would cost little, but it
# is one plant alone: under this model the valley never stands by itself.

# %%
numbers = pc.loss_by_n_clusters(draws, n_clusters=range(1, 7), random_seed=1)
display(numbers)

# %%
axes = pc.plot_loss_by_n_clusters(numbers)

# %% [markdown]
# ## Another model
#
# The same model with four species has been sampled as well. How far is its posterior from the first, and which plants
# make the difference?

# %%
four = pc.as_partition_draws(tree, group="four_species")
comparison = pc.compare_posteriors(draws, four, random_seed=1)
display(comparison)

# %% [markdown]
# The plants of the valley lose more than twenty companions each. Both answers of the first model become the one of
# the second, in which the valley is a species of its own.

# %%
display(comparison.transport.to_pandas().round(2))

# %%
axes = pc.plot_posterior_comparison(comparison, best)

# %%
print(pc.particles(four, random_seed=1).verdict)
