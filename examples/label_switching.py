# %% [markdown]
# # How do I read the parameters of a cluster if labels switch?
#
# Find the partition first: it has no labels to switch. Then `pc.relabel` numbers the components of every draw by the
# clusters that they fit best, and ArviZ's tables have their usual meaning. Check `match_share` and the shares next to
# it. (`pc.cluster_summary` needs no relabelling, but [uses only draws that have the clusters](partial_partitions).)
#
# The data are three measurements of each of 178 wines, of three cultivars. The model is a mixture of three multivariate
# normals with different covariances. `examples/sample_wine.py` marginalized the labels, and sampled with NUTS.

# %%
import arviz as az
import numpy as np
import pandas as pd
import pymc as pm

import posterior_consensus as pc

idata = pc.load_example("wine")
idata["posterior"]["mu"].mean("draw").sel(feature="flavanoids").to_pandas().round(2)

# %% [markdown]
# Each row is a chain, each column a component: the same three means, but not always in the same columns. So a table by
# component mixes the clusters, and its R-hats are large although the chains agree.

# %%
az.summary(idata, var_names=["w", "mu"], kind="diagnostics")["r_hat"].astype(float).max()

# %% [markdown]
# ## Clusters first
#
# The model turns each draw into allocation probabilities, as [after `pm.sample`](after_pm_sample.py). These give the
# partition, and show that the chains agree.

# %%
y = idata["observed_data"]["y"]
coords = {"wine": y["wine"].values, "feature": y["feature"].values, "component": np.arange(3)}
with pm.Model(coords=coords) as model:
    w = pm.Dirichlet("w", np.full(3, 2.0), dims="component")
    mu = pm.Normal("mu", 0.0, 1.0, dims=("component", "feature"), initval="prior")
    components, spreads = [], []
    for k in range(3):
        spread = pm.LogNormal.dist(np.log(0.6), 0.3, shape=3)
        factor, _, sd = pm.LKJCholeskyCov(f"cholesky_{k}", n=3, eta=2.0, sd_dist=spread)
        components.append(pm.MvNormal.dist(mu=mu[k], chol=factor))
        spreads.append(sd)
    pm.Deterministic("sigma", pm.math.stack(spreads), dims=("component", "feature"))
    pm.Mixture("y", w=w, comp_dists=components, observed=y.values, dims=("wine", "feature"))
soft = pc.allocation_probabilities(model, idata, progressbar=False)
summary = pc.summarize(soft, modes=False, random_seed=1, progressbar=False)
summary

# %% [markdown]
# ## Components by cluster

# %%
aligned = pc.relabel(idata, summary.partition, component_dim="component", allocations=soft)
shares = "match_share", "cluster_agreement", "component_agreement", "left_out"
rows = pd.RangeIndex(3, name="component")
pd.DataFrame({name: aligned["relabelling"][name].values for name in shares}, rows).round(2)

# %% [markdown]
# - `match_share`: the share of draws in which a cluster has an item in common with its component.
# - `cluster_agreement`: the share of the cluster's items that are in this component.
# - `component_agreement`: the share of the component's items that are in the cluster.
# - `left_out`: the share of all items in components without a cluster.
#
# Of these standardized means, component 0 has the highest flavanoids and proline, component 2 the lowest flavanoids:

# %%
az.summary(aligned, var_names=["mu"], round_to=2)

# %%
# Figure: Intervals of the standardized means of flavanoids, colour and proline in each of the three relabelled
# components; most do not overlap between components.
forest = az.plot_forest(aligned, var_names=["mu"], combined=True)

# %% [markdown]
# ## The data by cluster
#
# Colours are the clusters' means, in standard deviations from the overall mean. Lines show the spread within a cluster.

# %%
# Figure: Heat map of the standardized means of three measurements in three clusters of wines, with lines for the
# standard deviations within clusters.
ax = pc.plot_cluster_profiles(y, summary.partition)

# %% [markdown]
# The cultivars, which the model did not see, are in the names of the wines.

# %%
cultivar = np.array([name.split()[0] for name in y["wine"].values])
# Figure: Flows of wines from the three cultivars to the three clusters; nearly all wines of a cultivar go to one
# cluster.
ax = pc.plot_alluvial({"cultivar": cultivar, "clusters": summary.partition})
