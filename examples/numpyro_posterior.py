# %% [markdown]
# # A posterior of NumPyro or Stan: stored probabilities
#
# In NumPyro and Stan labels are marginalized, too, but there is no PyMC model to compute the allocation probabilities
# afterwards. So store them with the draws: the logarithms of $P(z_i = k \mid \theta, y_i)$, an array of items x
# components in every draw. In NumPyro that is a deterministic site, as in `examples/sample_numpyro.py`:
#
# ```python
# mixture = dist.MixtureSameFamily(dist.Categorical(probs=w), dist.Normal(mu, sigma))
# with numpyro.plate("galaxy", y.size):
#     numpyro.sample("velocity", mixture, obs=y)
# numpyro.deterministic("log_prob_z", jax.nn.log_softmax(mixture.component_log_probs(y), axis=-1))
# ```
#
# In Stan it is a generated quantity, which need not be normalized:
#
# ```stan
# generated quantities {
#   matrix[N, K] log_prob_z;
#   for (n in 1:N)
#     for (k in 1:K)
#       log_prob_z[n, k] = log(w[k]) + normal_lpdf(y[n] | mu[k], sigma[k]);
# }
# ```
#
# ArviZ turns either into an InferenceData or a DataTree (`az.from_numpyro(mcmc)`, `az.from_cmdstanpy(fit)`).

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies_numpyro.nc", engine="h5netcdf") as file:
    idata = file.load()
display(idata["posterior"]["log_prob_z"])

# %% [markdown]
# ## Found without a name
#
# You need not give a name: `log_prob_z` is a usual one. Under any other name the variable is found if its exponentials
# sum to one over the components. If it is not normalized and is called, say, `eta`, pass that name:
# `pc.summarize(idata, "eta")`.

# %%
summary = pc.summarize(idata, random_seed=1, progressbar=False)
display(summary)

# %% [markdown]
# The line `draws` names the variable that was used. If a posterior has probabilities and labels sampled from them, the
# probabilities are used, because they are less noisy.
#
# ## The probabilities themselves
#
# `as_allocation_probabilities` takes logarithms or probabilities, normalized or not, in single or double precision.

# %%
soft = pc.as_allocation_probabilities(idata)
display(soft)

# %%
ax = pc.plot_psm(soft, summary.consensus)

# %% [markdown]
# ## The same posterior, from another sampler
#
# `data/galaxies.nc` is the posterior of the same model by PyMC, with labels. It is truncated at 20 components, this one
# at 12. Do the two consensus partitions agree?

# %%
with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    other = pc.as_partition_draws(file.load(), "z")
by_pymc = pc.consensus_partition(other, random_seed=1)
print(f"VI between the two: {pc.partition_loss(by_pymc, summary.consensus):.3f} bits")
