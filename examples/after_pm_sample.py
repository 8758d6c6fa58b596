# %% [markdown]
# # After `pm.sample`
#
# You have sampled a mixture in PyMC. This page takes its posterior to a partition, a figure, a paragraph for the paper
# and a stored result. The data are the velocities of 82 galaxies, the model is a Dirichlet process mixture of normals,
# truncated at 20 components.

# %%
import numpy as np
import pymc as pm
import xarray as xr

import posterior_consensus as pc

idata = pc.load_example("galaxies")  # data, and the posterior of the call below
del idata["posterior"]["z"]  # labels that the script added
velocity = idata["observed_data"]["velocity"]
coords = {"galaxy": velocity["galaxy"].values, "component": np.arange(20)}
with pm.Model(coords=coords) as model:
    alpha = pm.Gamma("alpha", alpha=4, beta=4)
    w = pm.StickBreakingWeights("w", alpha=alpha, K=19, dims="component")
    mu = pm.Normal("mu", mu=20, sigma=10, dims="component", initval="prior")
    sigma = pm.LogNormal("sigma", mu=np.log(0.75), sigma=0.25, dims="component")
    pm.NormalMixture("velocity", w=w, mu=mu, sigma=sigma, observed=velocity.values, dims="galaxy")
summary = pc.summarize(idata, model=model, random_seed=1, progressbar=False)
# Figure: Histogram of the velocities stacked by cluster, and below it a point for each galaxy, smaller the less
# similar it is to its cluster.
ax = pc.plot_data(velocity, summary.partition, items=summary.items)
_ = ax.set_xlabel("velocity (1,000 km/s)")

# %% [markdown]
# A small point marks a galaxy of low mean similarity to its cluster; below 0.5 it is hollow.
#
# NUTS cannot sample labels, so `pm.NormalMixture` sums them out. Sampling takes some minutes:
#
# ```python
# with model:
#     idata = pm.sample(24_000, tune=2_000, chains=4, target_accept=0.9, random_seed=1990)
# ```
#
# Of these 96,000 draws, keep every 24th: `.isel(draw=slice(None, None, 24))`. The result was loaded above;
# `examples/sample_galaxies.py` made it, and shows that the truncation hardly binds: no draw has galaxies in more than
# 17 components.

# %%
idata["posterior"].data_vars

# %% [markdown]
# ## The partition
#
# The posterior has no labels. Pass the model, which gives the probability of every label in every draw. The default
# loss, variation of information (VI), needs labels, so one partition is sampled in each draw. [Get
# started](../get_started.md) uses the labels `z` that were dropped above, another such sample, so its numbers differ
# slightly from those here. If your model has labels, such as `z = pm.Categorical("z", p=w)`, leave out `model`: the
# labels are found by themselves.

# %%
summary

# %% [markdown]
# Read the line **chains** first: if the chains disagree, do not report the partition, but see
# [chains that have not converged](not_converged.py). [Get started](../get_started.md#reading-the-summary) explains the
# other lines.
#
# Labels switch from draw to draw, and this does no harm. R-hat is computed for the partition and for scalar summaries
# that do not depend on the labels. Do not use the R-hat of `mu` or `w`, or their posterior means: component 3 is one
# cluster in one draw and another in the next. ArviZ's R-hat of `alpha` and of the log posterior are valid, as neither
# belongs to a component: check these, and the divergences.

# %% [markdown]
# ## The figure
#
# [Reporting](reporting.py) has a caption for its four panels.

# %%
# Figure: Four panels: similarity matrix of 82 galaxies with six clusters outlined, number of clusters in the draws,
# credible ball, and mean similarity of each galaxy to its own and the nearest other cluster.
axes = summary.plot()
axes[0, 0].figure.savefig("galaxies.pdf")

# %% [markdown]
# ## The paragraph
#
# `methods_text` writes the sentences and their references, `bibtex` the entries.

# %%
print(summary.methods_text())

# %% [markdown]
# ## The report, and the stored result
#
# The report is one HTML file with all findings, figures and tables. `pc.attach` stores the result as a group next to
# the posterior, which NetCDF and Zarr files keep.
# `pc.results.Summary.from_dataset(idata["consensus"], idata, model=model)` reads it back. The group does not hold the
# draws, so pass `model` and the like as you did to `pc.summarize`.

# %%
summary.to_html("galaxies.html", progressbar=False)
idata = pc.attach(idata, summary)
list(idata["consensus"].data_vars)[:5]

# %%
idata.to_netcdf("galaxies_with_consensus.nc", engine="h5netcdf")

# %% [markdown]
# ## New observations
#
# The posterior also allocates new galaxies. `pc.predict_allocation` gives the probability that each belongs to a
# cluster of the partition, or to none of them ("elsewhere"). A new velocity updates the parameters: its density weights
# the draws. If too few draws have weight, the probabilities are NaN, and `reason` states why.

# %%
new = xr.DataArray([9.5, 17.0, 24.0, 28.0], dims="new", coords={"new": ["a", "b", "c", "d"]})
new_draws = pc.allocation_probabilities(model, idata, observed={"velocity": new}, progressbar=False)
predicted = pc.predict_allocation(new_draws, summary.draws, partition=summary.partition)
predicted.probabilities.to_pandas().round(2)

# %%
predicted.ess.to_pandas().round()

# %% [markdown]
# Next: [choose a loss](choosing_a_loss.py) for your question, and [write it up](reporting.py).
