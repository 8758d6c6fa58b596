# %% [markdown]
# # Does the partition depend on the concentration parameter?
#
# A Dirichlet process mixture has a concentration parameter. A large one makes many clusters likely a priori, so a
# reviewer may ask what another value would have given. The draws answer this without another run, if they cover enough
# of the posterior under that value.
#
# The posterior is that of the 82 galaxies: a truncated Dirichlet process mixture whose concentration has a Gamma(4, 4)
# prior. `examples/sample_galaxies.py` sampled it.

# %%
import numpy as np
import xarray as xr
from scipy import stats
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    tree = file.load()

# %% [markdown]
# ## The prior of the number of clusters
#
# `pc.priors` has the usual priors on partitions. A concentration is a number, a SciPy distribution, or the shape and
# rate of a Gamma prior; a prior is integrated out. In the figure, the line is the prior of the number of clusters, and
# the bars are its posterior.

# %%
prior = pc.priors.crp((4, 4))
ax = pc.plot_n_clusters(tree, prior=prior)

# %% [markdown]
# ## Other concentrations
#
# Each draw is weighted by the ratio of the prior probabilities of its partition, which depend only on its cluster
# sizes. The rest of the model does not change. The weights are reliable if their Pareto k-hat is small, or if nearly
# all weight is at ratios that were seen often (`rare` is small). Otherwise the draws cover too little of the other
# posterior, and the results are NaN.

# %%
others = {f"a = {a:g}": pc.priors.crp(a) for a in (0.1, 0.25, 0.5, 1, 2, 4, 8, 16)}
found = pc.prior_sensitivity(tree, prior, alternatives=others, random_seed=1)
display(found)

# %% [markdown]
# - `n_clusters`: the expected number of clusters under the alternative.
# - `excess_loss`: the expected loss of the reported partition minus that of the best one under the alternative.
# - `n_moved`: the number of galaxies whose cluster differs between these two partitions.
#
# The number of clusters of the draws grows with the concentration. The partition to report hardly changes: a larger
# concentration adds small clusters that differ from draw to draw.

# %%
axes = pc.plot_prior_sensitivity(found)

# %% [markdown]
# These galaxies change clusters:

# %%
display(found.moved)

# %% [markdown]
# ## Other families
#
# The alternative can be of another family, such as a Pitman-Yor process or a mixture with an unknown number of
# components.

# %%
families = {
    "Pitman-Yor": pc.priors.pitman_yor(1.0, discount=0.3),
    "finite": pc.priors.mixture_of_finite_mixtures(1.0, stats.geom(0.1)),
}
display(pc.prior_sensitivity(tree, prior, alternatives=families, random_seed=1))

# %% [markdown]
# ## Every other function under another prior
#
# `reweight` gives the weighted draws. It refuses weights that meet neither criterion.

# %%
ratio = pc.priors.crp(0.5).log_prob(tree) - prior.log_prob(tree)
other = pc.reweight(tree, ratio)
display(pc.credible_ball(other, found.reference))

# %%
try:
    pc.reweight(tree, pc.priors.crp(16.0).log_prob(tree) - prior.log_prob(tree))
except ValueError as error:
    print(error)

# %% [markdown]
# ## Labels as they were sampled
#
# PyMC truncates the process: `StickBreakingWeights` has 20 components here (`K=19`), and their order matters.
# `stick_breaking` is the exact prior of these labels. If the last components stay empty, as here, `crp` gives nearly
# the same result, with more effective draws.

# %%
sticks = {f"a = {a:g}": pc.priors.stick_breaking(a, n_components=20) for a in (0.5, 2)}
exact = pc.prior_sensitivity(
    tree, pc.priors.stick_breaking((4, 4), n_components=20), alternatives=sticks, random_seed=1
)
columns = ["n_clusters", "effective_draws"]
display(exact.to_dataframe()[columns])
display(found.to_dataframe().loc[list(sticks), columns])

# %% [markdown]
# Both give the same number of clusters, up to their Monte Carlo errors.

# %%
errors = np.hypot(exact.table["n_clusters_mcse"], found.table["n_clusters_mcse"].sel(alternative=list(sticks)))
assert np.all(abs(exact.table["n_clusters"] - found.table["n_clusters"].sel(alternative=list(sticks))) < 3 * errors)
