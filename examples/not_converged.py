# %% [markdown]
# # A posterior that has not converged, and how you see it
#
# A sampler always returns something. Here it is a short run of a Dirichlet process mixture with explicit labels for the
# 82 galaxies: two chains of 300 draws, in which Gibbs steps move one galaxy at a time.
# `examples/sample_not_converged.py` makes such a run in a minute. A consensus partition of its draws looks like any
# other, but means little.

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies_not_converged.nc", engine="h5netcdf") as file:
    idata = file.load()
draws = pc.as_partition_draws(idata)
best = pc.consensus_partition(draws, random_seed=1)
display(best)

# %% [markdown]
# ## The verdict

# %%
diagnosis = pc.diagnose(draws, best)
display(diagnosis)

# %% [markdown]
# The largest difference between the chains' similarities (the attribute `gap`) is the number to show to others: two
# galaxies are almost never co-clustered in one chain, and almost always in the other. `summarize` and its report also
# give the verdict, so that nobody overlooks it:

# %%
print(pc.summarize(idata, random_seed=1, progressbar=False).findings()[-1])

# %% [markdown]
# ## Side by side
#
# Here is one similarity matrix for each chain, in the same order and on the same scale. The circles mark the pair with
# the largest difference.

# %%
axes = pc.plot_psm(draws, best, by="chain")

# %% [markdown]
# ## One number misleads
#
# It is common to follow one scalar, such as the number of clusters or the distance to some partition. But two chains
# can lie at equal distances from a partition, on different sides of it. Take the distance to a single draw, for every
# tenth draw of this run. Here are the smallest, the median and the largest R-hat of these distances.

# %%
some = {f"draw {t}": draws.labels[t] for t in range(0, draws.n_draws, 10)}
rhat = pc.diagnose(draws, best, references=some).summaries["rhat"].to_series().filter(like="distance to draw")
display(rhat.sort_values().iloc[[0, len(rhat) // 2, -1]].round(2))

# %% [markdown]
# The chains are the same, but R-hat ranges from below the old limit of 1.1 to hopeless. `diagnose` therefore uses many
# scalar summaries, among them the distances to two distant draws, the partition as a whole and single pairs. The worst
# of all these decides.

# %%
axes = pc.plot_traces(diagnosis)

# %% [markdown]
# ## A map of the draws
#
# Each point is a draw. Points are near each other if their partitions are similar. Chains that had converged would
# cover the same region.

# %%
ax = pc.plot_draws_map(draws, best)

# %% [markdown]
# ## What particles show, and what they do not
#
# `particles` looks for separate modes, as in [a posterior with two modes](two_answers.py). Here it finds no second
# mode, and its verdict states that the chains disagree.

# %%
print(pc.particles(draws, random_seed=1, progressbar=False).verdict)

# %% [markdown]
# The absence of a second mode is no sign of convergence. A separate mode needs a valley: few draws between it and the
# others. The two chains lie in different places but overlap, as the map shows, so there is no valley. Chains that mix
# slowly also have too small an effective sample size to show one. With two particles requested, each chain is near
# one of them most of the time.

# %%
two = pc.particles(draws, 2, random_seed=1, progressbar=False)
display(two.by_chain.to_pandas().round(2))

# %% [markdown]
# The weights reflect how many draws each chain has, not the posterior. Their large standard errors show this.

# %%
display((two.weights.values.round(2), two.weights_mcse.values.round(2)))

# %% [markdown]
# So run `diagnose` first. If chains stay in separate modes, without overlap, `particles` also names them, and its
# status is "chains in different modes". If they overlap, as here, its status is "unknown", because the chains disagree.

# %% [markdown]
# ## What to do
#
# Do not take the chain that looks better. More draws help if chains visit the same partitions, but slowly. If they do
# not, as here, use another sampler. For the galaxies this is NUTS on the marginalized mixture, with the labels sampled
# from their probabilities afterwards. `examples/sample_galaxies.py` did that, with four long chains.

# %%
with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    good = pc.as_partition_draws(file.load(), "z")
display(pc.diagnose(good))

# %%
ax = pc.plot_draws_map(good)
