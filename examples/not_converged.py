# %% [markdown]
# # A posterior that has not converged, and how you see it
#
# A sampler always returns something. Here it is a short run of a Dirichlet process mixture with explicit labels for
# the 82 galaxies: two chains of 300 draws, in which Gibbs steps move one galaxy at a time.
# `examples/sample_not_converged.py` makes such a run in a minute. A consensus partition of its draws looks as
# good as any, and means little.

# %%
import xarray as xr

import posterior_consensus as pc

with xr.open_datatree("data/galaxies_not_converged.nc", engine="h5netcdf") as file:
    idata = file.load()
draws = pc.as_partition_draws(idata)
best = pc.consensus_partition(draws, random_seed=1)
best

# %% [markdown]
# ## The verdict

# %%
diagnosis = pc.diagnose(draws, best)
diagnosis

# %% [markdown]
# The largest gap is the number to show around: two galaxies, almost never together in one chain, almost always in the
# other. `summarize` and its report give the verdict as well, so that it is not overlooked:

# %%
pc.summarize(idata, random_seed=1, progressbar=False).findings()[-1]

# %% [markdown]
# ## Side by side
#
# One similarity matrix for each chain, in one order and on one scale. The circles are the pair with the largest gap.

# %%
axes = pc.plot_psm_by_chain(draws, best)

# %% [markdown]
# ## One number misleads
#
# It is common to follow one scalar, such as the number of clusters or the distance to some partition. But two chains
# can lie at equal distances from a partition, on different sides of it. Here are R-hats of the distance to single
# draws, every tenth of this run: the least, the median and the largest.

# %%
some = {f"draw {t}": draws.labels[t] for t in range(0, draws.n_draws, 10)}
rhat = pc.diagnose(draws, best, references=some).summaries["rhat"].to_series().filter(like="distance to draw")
rhat.sort_values().iloc[[0, len(rhat) // 2, -1]].round(2)

# %% [markdown]
# The same two chains, and R-hat says anything between what the old limit of 1.1 let pass and hopeless. `diagnose`
# therefore follows many numbers, distances to two far draws among them, and the partition as a whole and single pairs;
# the worst counts.

# %%
axes = pc.plot_traces(diagnosis)

# %% [markdown]
# ## A map of the draws
#
# Points are draws, near each other where their partitions are alike. Chains that had converged would cover the same
# ground.

# %%
ax = pc.plot_draws_map(draws, best)

# %% [markdown]
# ## What to do
#
# Not: take the chain that looks better. More draws help where chains visit the same places, if slowly. Where they do
# not, as here, sample another way. For the galaxies that is the marginalised mixture: NUTS without labels, the labels
# from their probabilities. `examples/sample_galaxies.py` did that, with four long chains.

# %%
with xr.open_datatree("data/galaxies.nc", engine="h5netcdf") as file:
    good = pc.as_partition_draws(file.load(), "z")
pc.diagnose(good)

# %%
ax = pc.plot_draws_map(good)
