# %% [markdown]
# # Does the partition depend on the prior?
#
# Here, hardly: among 498 records, 406.6 to 412.2 people are expected under the other priors that the draws can judge
# (409.1 under its own prior), and the links to report change by one at most. The draws answer this without another run,
# if they cover enough of the posterior under the other prior. `pc.prior_sensitivity` gives NaN if they do not.
#
# The posterior is that of [the tutorial on record linkage](record_linkage): records with typing errors, in a cluster
# for each person. Its prior is a Pitman-Yor process with concentration 100 and discount 0.7.

# %%

import posterior_consensus as pc

draws = pc.as_partition_draws(pc.load_example("records"), "z")

# %% [markdown]
# ## The prior of the number of clusters
#
# `pc.priors` has the usual priors on partitions. A concentration is a number, a SciPy distribution, or the shape and
# rate of a Gamma prior, which is integrated out. The line is the prior, the bars are the posterior.

# %%
prior = pc.priors.pitman_yor(100.0, discount=0.7)
# Figure: Number of clusters in the draws of four chains, about 409, far above the prior, which is centred near 358.
ax = pc.plot_n_clusters(draws, prior=prior)

# %% [markdown]
# ## Other values
#
# Each draw is weighted by the ratio of the prior probabilities of its partition, which depend on its cluster sizes
# only. The rest of the model stays. The weights are reliable if enough effective draws remain, if numbers of clusters
# that no draw has would get little weight (`unseen`), and if the Pareto k-hat or the weight of rare ratios (`rare`) is
# small.

# %%
others = {f"a = {a}": pc.priors.pitman_yor(a, discount=0.7) for a in (25, 50, 100, 200, 400)}
found = pc.prior_sensitivity(draws, prior, alternatives=others, loss="binder", random_seed=1)
found

# %% [markdown]
# - `n_clusters`: the expected number of clusters under the alternative.
# - `excess_loss`: the expected loss of the reported partition minus that of the best one under the alternative.
# - `n_moved`: the number of records whose cluster differs between these two partitions. `found.moved` names them.

# %%
# Figure: Expected number of clusters by concentration, from 407.4 to 412.2, and the excess expected loss of the
# partition, at most about 0.000003.
axes = found.plot()

# %% [markdown]
# Other discounts change as little. At 0.5, the draws cover too little of the posterior: sample under it.

# %%
others = {f"d = {d}": pc.priors.pitman_yor(100.0, discount=d) for d in (0.5, 0.6, 0.8)}
pc.prior_sensitivity(draws, prior, alternatives=others, loss="binder", random_seed=1)

# %% [markdown]
# ## Another family, and every other function
#
# An alternative can be of another family: `crp`, `dirichlet_multinomial` (mixture weights from a symmetric Dirichlet
# distribution), `mixture_of_finite_mixtures` or your own. `stick_breaking` is the exact prior of PyMC's truncated
# `StickBreakingWeights`; if the last components stay empty, `crp` gives nearly the same result with more effective
# draws. `pc.reweight` gives the weighted draws to any function. It refuses unreliable weights.

# %%
ratio = pc.priors.pitman_yor(200.0, discount=0.7).log_prob(draws) - prior.log_prob(draws)
other = pc.reweight(draws, ratio)
pc.expected_loss(other, found.partition, loss="binder")

# %%
try:
    pc.reweight(draws, pc.priors.crp(100.0).log_prob(draws) - prior.log_prob(draws))
except ValueError as error:
    print(error)
