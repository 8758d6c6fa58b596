# %% [markdown]
# # My chains disagree: how do I see it, and what do I do?
#
# `pc.diagnose` gives the verdict. If it is "disagree", a consensus of the draws looks like any other, but means little.
# Do not choose a chain by its partition. More draws help if the chains visit the same partitions, but slowly. If they
# do not, use another sampler: below, NUTS on the marginalized mixture.
#
# The run has two chains of 300 draws, of a Dirichlet process mixture with sampled labels for the velocities of 82
# galaxies. Gibbs steps move one galaxy at a time. `examples/sample_not_converged.py` makes such a run in a minute.

# %%
import posterior_consensus as pc

z = pc.load_example("galaxies_not_converged")["posterior"]["z"]
draws = pc.as_partition_draws(z.rename(obs="galaxy"))  # PyMC's name of the items was "obs"
best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
diagnosis = pc.diagnose(draws, best)
diagnosis

# %% [markdown]
# The largest difference between the chains' similarities (the attribute `largest_difference`) is the number to show:
# two galaxies are almost never co-clustered in one chain, and almost always in the other. Circles mark this pair.

# %%
# Figure: Similarity matrices of the two chains side by side, which differ in many blocks; circles mark the pair of
# largest difference, 0.93.
axes = pc.plot_psm(draws, best, by="chain")

# %% [markdown]
# ## Scalars differ in how clearly they show it
#
# Two chains can be at equal distances from a partition, on different sides of it. Here are the smallest, the median and
# the largest R-hat of the distance to a single draw, over every tenth draw of this run. All exceed 1.05.

# %%
some = {f"draw {t}": draws.labels[t] for t in range(0, draws.n_draws, 10)}
rhat = pc.diagnose(draws, best, references=some).summaries["rhat"].to_series().filter(like="distance to draw")
rhat.sort_values().iloc[[0, len(rhat) // 2, -1]].round(2)

# %% [markdown]
# `diagnose` therefore uses the partition as a whole, single pairs, and many scalar summaries: the number of clusters,
# and distances to the consensus, to the *far draw*, which is farthest from the consensus, and to the *opposite draw*,
# which is farthest from the far draw. The worst decides.

# %%
# Figure: Traces and rank histograms of seven scalar summaries; the two chains lie at different levels.
axes = diagnosis.plot()

# %% [markdown]
# On a map of the draws, points are close if their partitions are similar. Chains that agree cover the same region.

# %%
# Figure: Map of the draws by VI: the draws of the two chains lie on different sides.
ax = pc.plot_draws_map(draws, best)

# %% [markdown]
# ## Does a search for modes show it?
#
# Not always. A mode of its own needs a valley: few draws between it and the others. These chains lie in different
# places but overlap, so there is none. If chains stay in different modes, that is the status of `pc.particles`: "chains
# in different modes". Here its status is "unknown", and its verdict states that the chains disagree.

# %%
print(pc.particles(draws, random_seed=1, progressbar=False).verdict)

# %% [markdown]
# With two particles requested, each chain is near one of them most of the time. The weights then reflect how many draws
# each chain has, not the posterior, as their standard errors show.

# %%
two = pc.particles(draws, 2, random_seed=1, progressbar=False)
two.by_chain.to_pandas().round(2)

# %%
(two.weights.values.round(2), two.weights_mcse.values.round(2))

# %% [markdown]
# ## The remedy
#
# `examples/sample_galaxies.py` sampled the same data with NUTS and four long chains. The labels were then sampled from
# their probabilities.

# %%
good = pc.as_partition_draws(pc.load_example("galaxies"), "z")
print(pc.diagnose(good).verdict)

# %%
# Figure: Map of the draws of a converged run: the four chains overlap everywhere.
ax = pc.plot_draws_map(good)
