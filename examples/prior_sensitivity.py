# %% [markdown]
# # Does the clustering hang on the concentration parameter?
#
# A Dirichlet process mixture has a concentration parameter. A large one makes many clusters likely before any data are
# seen, so a reviewer asks what another value would have given. The draws answer that without another run, as long as
# they hold enough of the other posterior.
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
# ## The prior beside the posterior
#
# `pc.priors` has the priors on partitions that models use. A concentration is a number, a SciPy distribution, or the
# shape and rate of a Gamma prior, which is integrated out. The line is the prior of the number of clusters, the bars
# are its posterior.

# %%
prior = pc.priors.crp((4, 4))
ax = pc.plot_n_clusters(tree, prior=prior)

# %% [markdown]
# ## Other concentrations
#
# Each draw is weighted by the ratio of its two prior probabilities, which its cluster sizes give. The rest of the model
# stays as it is. Pareto smoothing tells how far such weights can be trusted: above a k-hat of 0.7 the draws hold too
# little of the other posterior, and there are no numbers.

# %%
others = {f"a = {a:g}": pc.priors.crp(a) for a in (0.1, 0.25, 0.5, 1, 2, 4, 8, 16)}
found = pc.prior_sensitivity(tree, prior, alternatives=others, random_seed=1)
display(found)

# %% [markdown]
# - `n_clusters`: the expected number of clusters under the alternative.
# - `excess_loss`: how much worse the reported partition is there than the best one, over the same draws.
# - `n_moved`: the number of galaxies that would change clusters.
#
# The number of clusters of the draws grows with the concentration. The partition to report hardly changes: what a
# larger concentration adds are small clusters that differ from draw to draw.

# %%
axes = pc.plot_prior_sensitivity(found)

# %% [markdown]
# These galaxies would move:

# %%
display(found.moved)

# %% [markdown]
# ## Other families
#
# A Pitman-Yor process and a mixture with an unknown number of components are priors of the same draws.

# %%
families = {
    "Pitman-Yor": pc.priors.pitman_yor(1.0, discount=0.3),
    "finite": pc.priors.mixture_of_finite_mixtures(1.0, stats.geom(0.1)),
}
display(pc.prior_sensitivity(tree, prior, alternatives=families, random_seed=1))

# %% [markdown]
# ## Every other function under another prior
#
# `reweight` gives the weighted draws. It refuses weights with a k-hat above 0.7.

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
# PyMC truncates the process: `StickBreakingWeights` has 20 components here, in an order that matters. `stick_breaking`
# is the exact prior of such labels. Where the last components stay empty, as here, `crp` gives the same answer with
# more effective draws.

# %%
sticks = {f"a = {a:g}": pc.priors.stick_breaking(a, n_components=20) for a in (0.5, 2)}
exact = pc.prior_sensitivity(
    tree, pc.priors.stick_breaking((4, 4), n_components=20), alternatives=sticks, random_seed=1
)
columns = ["n_clusters", "effective_draws"]
display(exact.to_dataframe()[columns])
display(found.to_dataframe().loc[list(sticks), columns])

# %% [markdown]
# They agree to within their errors.

# %%
errors = np.hypot(exact.table["n_clusters_mcse"], found.table["n_clusters_mcse"].sel(alternative=list(sticks)))
assert np.all(abs(exact.table["n_clusters"] - found.table["n_clusters"].sel(alternative=list(sticks))) < 3 * errors)
