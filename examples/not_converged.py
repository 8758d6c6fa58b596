# %% [markdown]
# # A posterior that has not converged, and how you see it
#
# A sampler always returns something. Here it is a short run of a Dirichlet process mixture with explicit labels for
# the 82 galaxies: two chains of 300 draws, in which Gibbs steps move one galaxy at a time.
# `examples/sample_not_converged.py` makes such a run in a minute. A consensus partition of its draws looks as good as
# any other, but means little.

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
# The largest gap is the number to show to others: two galaxies are almost never together in one chain, and almost
# always in the other. `summarize` and its report give the verdict as well, so that nobody overlooks it:

# %%
print(pc.summarize(idata, random_seed=1, progressbar=False).findings()[-1])

# %% [markdown]
# ## Side by side
#
# Here is one similarity matrix for each chain, in the same order and on the same scale. The circles mark the pair with
# the largest gap.

# %%
axes = pc.plot_psm_by_chain(draws, best)

# %% [markdown]
# ## One number misleads
#
# It is common to follow one scalar, such as the number of clusters or the distance to some partition. But two chains
# can lie at equal distances from a partition, on different sides of it. Take the distance to a single draw, for every
# tenth draw of this run. Here are the least, the median and the largest of the R-hats of these distances.

# %%
some = {f"draw {t}": draws.labels[t] for t in range(0, draws.n_draws, 10)}
rhat = pc.diagnose(draws, best, references=some).summaries["rhat"].to_series().filter(like="distance to draw")
display(rhat.sort_values().iloc[[0, len(rhat) // 2, -1]].round(2))

# %% [markdown]
# The chains are the same, but R-hat ranges from below the old limit of 1.1 to hopeless. `diagnose` therefore follows
# many numbers, among them the distances to two far draws. It also looks at the partition as a whole and at single
# pairs. The worst of all these counts.

# %%
axes = pc.plot_traces(diagnosis)

# %% [markdown]
# ## A map of the draws
#
# Each point is a draw. Points are near each other where their partitions are alike. Chains that had converged would
# cover the same region.

# %%
ax = pc.plot_draws_map(draws, best)

# %% [markdown]
# ## What particles say, and what they do not
#
# `particles` looks for several answers, as in [a posterior with two answers](two_answers.py). Here it finds one.

# %%
print(pc.particles(draws, random_seed=1, progressbar=False).verdict)

# %% [markdown]
# That is no sign of convergence. An answer of its own needs a valley, few draws between it and the others. The two
# chains live in different places but overlap, as the map shows, so that there is no valley; and draws that creep are
# worth too few to show one. With two particles asked for, each chain is at one of them most of the time.

# %%
two = pc.particles(draws, 2, random_seed=1, progressbar=False)
display(two.by_chain.to_pandas().round(2))

# %% [markdown]
# The weights tell how many draws each chain has, and nothing of the posterior. Their standard errors say so.

# %%
display((two.weights.values.round(2), two.weights_mcse.values.round(2)))

# %% [markdown]
# So ask `diagnose` first. Where chains stay in modes of their own, without overlap, `particles` names them as well,
# and its status is "chains in different modes". Where they overlap, as here, only `diagnose` tells.

# %% [markdown]
# ## What to do
#
# Do not take the chain that looks better. More draws help where chains visit the same partitions, if slowly. Where they
# do not, as here, use another sampler. For the galaxies that is NUTS on the marginalised mixture, with the labels drawn
# from their probabilities afterwards. `examples/sample_galaxies.py` did that, with four long chains.

# %%
with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    good = pc.as_partition_draws(file.load(), "z")
display(pc.diagnose(good))

# %%
ax = pc.plot_draws_map(good)
