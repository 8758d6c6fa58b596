# %% [markdown]
# # Several dimensions, and label switching undone
#
# The data are three measurements of each of 178 wines, of three cultivars. The model is a mixture of three multivariate
# normals with different covariances. The labels were marginalized, and NUTS sampled the parameters. Nothing kept the
# components in order, as vectors have no natural order. `examples/sample_wine.py` sampled the posterior.

# %%
import arviz as az
import numpy as np
import pymc as pm
from tutorial import DATA, display

import posterior_consensus as pc

idata = az.from_netcdf(DATA / "wine.nc")
display(idata["posterior"]["mu"].mean("draw").sel(feature="flavanoids").to_pandas().round(2))

# %% [markdown]
# Each row is a chain, each column a component: the same three means in every row, but not always in the same columns.
# A table of the posterior by component mixes the clusters. Its R-hats are large although the chains agree.

# %%
display(az.summary(idata, var_names=["w", "mu"], kind="diagnostics")["r_hat"])

# %% [markdown]
# ## Clusters first
#
# A partition has no labels to switch. The model turns each draw into allocation probabilities (see
# [after `pm.sample`](after_pm_sample.py)). These give the partition, and show that the chains agree.

# %%
y = idata["observed_data"]["y"]
coords = {"wine": y["wine"].values, "feature": y["feature"].values, "component": np.arange(3)}
with pm.Model(coords=coords) as model:
    w = pm.Dirichlet("w", np.full(3, 2.0), dims="component")
    mu = pm.Normal("mu", 0.0, 1.0, dims=("component", "feature"))
    components = []
    for k in range(3):
        spread = pm.LogNormal.dist(np.log(0.6), 0.3, shape=3)
        factor, _, _ = pm.LKJCholeskyCov(f"cholesky_{k}", n=3, eta=2.0, sd_dist=spread)
        components.append(pm.MvNormal.dist(mu=mu[k], chol=factor))
    pm.Mixture("y", w=w, comp_dists=components, observed=y.values, dims=("wine", "feature"))

soft = pc.allocation_probabilities(model, idata, progressbar=False)
summary = pc.summarize(soft, random_seed=1, progressbar=False)
display(summary)

# %% [markdown]
# ## Components by cluster
#
# `relabel` numbers the components of every draw by the consensus clusters that they fit best. It returns an
# object of the same type as the posterior.

# %%
aligned = pc.relabel(idata, summary.consensus, component_dim="component", allocations=soft)
display(aligned["relabelling"])

# %% [markdown]
# `match_share` is the share of draws in which a cluster has at least one item in common with its component.
# `cluster_agreement` is the share of the cluster's items that are in this component, and `component_agreement` the
# share of the component's items that are in the cluster. `left_out` is the share of all items in components without a
# cluster. Here the first is 1, the others are above 0.9, and nothing is left out: parameters can be read cluster by
# cluster, and R-hat has its usual meaning.

# %%
display(az.summary(aligned, var_names=["w", "mu", "sigma"], round_to=2))

# %%
forest = az.plot_forest(aligned, var_names=["mu"], combined=True)

# %% [markdown]
# ## The data by cluster
#
# Colours are the clusters' means, in standard deviations from the overall mean. Bars show the spread within a cluster.

# %%
ax = pc.plot_cluster_profiles(y, summary.consensus)

# %% [markdown]
# ## Do the clusters match the cultivars?
#
# The model did not see the cultivars. They are in the names of the wines.

# %%
cultivar = np.array([name.split()[0] for name in y["wine"].values])
ax = pc.plot_alluvial({"cultivar": np.unique(cultivar, return_inverse=True)[1], "clusters": summary.consensus})

# %%
display(summary.items.to_dataframe().sort_values("margin").head())
