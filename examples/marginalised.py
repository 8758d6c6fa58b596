# %% [markdown]
# # No labels in the posterior: a marginalized mixture
#
# NUTS needs a mixture whose labels are marginalized, such as `pm.NormalMixture`. Its posterior contains weights, means
# and standard deviations, but no labels. The model determines the probabilities of the labels, given these parameters:
#
# $$p_{tik} = P(z_i = k \mid \theta_t, y_i)
# = \frac{w_{tk} f_k(y_i \mid \theta_t)}{\sum_l w_{tl} f_l(y_i \mid \theta_t)}$$
#
# for draw $t$, item $i$ and component $k$. Pass the model and the posterior, and everything else works as with labels.
# The model here is taken from `examples/sample_galaxies.py`, which sampled `data/galaxies.nc`.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "galaxies.nc", engine="h5netcdf") as file:
    idata = file.load()
idata["posterior"] = xr.DataTree(idata["posterior"].to_dataset().drop_vars("z"))  # as NUTS leaves it
display(idata["posterior"].data_vars)

# %%
velocity = idata["observed_data"]["velocity"]
coords = {"galaxy": velocity["galaxy"].values, "component": np.arange(20)}
with pm.Model(coords=coords) as model:
    alpha = pm.Gamma("alpha", alpha=4, beta=4)
    w = pm.StickBreakingWeights("w", alpha=alpha, K=19, dims="component")
    mu = pm.Normal("mu", mu=20, sigma=10, dims="component")
    sigma = pm.LogNormal("sigma", mu=np.log(0.75), sigma=0.25, dims="component")
    pm.NormalMixture("velocity", w=w, mu=mu, sigma=sigma, observed=velocity.values, dims="galaxy")

# %% [markdown]
# ## One call

# %%
summary = pc.summarize(idata, model=model, random_seed=1, progressbar=False)
display(summary)

# %% [markdown]
# The summary was computed from the allocation probabilities. `allocation_probabilities` returns them. Every function
# that takes draws of labels takes them, too.

# %%
soft = pc.allocation_probabilities(model, idata, progressbar=False)
display(soft)

# %% [markdown]
# ## The similarity matrix without the noise of labels
#
# Given the parameters, two galaxies are co-clustered with probability $\sum_k p_{tik} p_{tjk}$. The mean of this over
# the draws is the posterior similarity matrix. One could also sample labels and count how often they agree. This
# estimates the same matrix, with additional noise from the labels (the Rao-Blackwell theorem).

# %%
psm = pc.posterior_similarity_matrix(soft)
ax = pc.plot_psm(psm, summary.consensus)

# %% [markdown]
# How much noise? Take the matrix of all 4,000 draws as the truth. Estimate it from 50 of them in two ways: from the
# probabilities, and from labels sampled once for each draw.

# %%
rng = np.random.default_rng(1)
pairs = np.triu_indices(soft.n_items, 1)
errors = []
for _ in range(20):
    few = pc.as_allocation_probabilities(
        soft.soft.probabilities[rng.choice(soft.n_draws, 50, replace=False)], log=False
    )
    estimates = pc.posterior_similarity_matrix(few), pc.posterior_similarity_matrix(few.sample(rng))
    errors.append([np.mean((estimate.values - psm.values)[pairs] ** 2) for estimate in estimates])
from_probabilities, from_labels = np.mean(errors, axis=0)
print(f"mean squared error: {from_probabilities:.5f} from probabilities, {from_labels:.5f} from labels")
print(f"sampled labels need {from_labels / from_probabilities:.1f} times as many draws")

# %% [markdown]
# [The background page](../background/allocations.md) has a table for other numbers of draws. Expected Binder
# losses come from the same matrix. VI and the credible ball need partitions: they use one sample of labels for each
# draw, with a fixed seed. `soft.sample(random_seed=...)` gives another.

# %% [markdown]
# ## Soft memberships
#
# How similar is a galaxy to each consensus cluster? The mean of $p_{ti3}$ over draws does not answer this, because
# component 3 is one cluster in one draw and another in the next. The mean posterior similarity to the other members of
# a cluster has the same meaning in every draw. `membership` gives a probability: that of belonging to each consensus
# cluster, see [the tutorial on memberships](memberships).

# %%
members = np.eye(summary.consensus.n_clusters)[summary.consensus.labels]
others = members.sum(axis=0) - members
membership = (psm.values - np.eye(soft.n_items)) @ members / others

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for k in range(summary.consensus.n_clusters):
    ax.plot(velocity, membership[:, k], ".", markersize=5, label=f"cluster {k}")
ax.set(xlabel="velocity (1,000 km/s)", ylabel="P(with a member)", ylim=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
legend = ax.legend(frameon=False, ncols=6, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))

# %% [markdown]
# ## New galaxies
#
# The posterior also allocates new galaxies. `predict_allocation` gives the probability that a new galaxy belongs to
# each consensus cluster, or to none of them: "elsewhere".

# %%
new = xr.DataArray([9.5, 17.0, 21.0, 24.0, 28.0], dims="new", coords={"new": ["a", "b", "c", "d", "e"]})
new_soft = pc.allocation_probabilities(model, idata, observed={"velocity": new}, progressbar=False)
predicted = pc.predict_allocation(new_soft, soft, partition=summary.consensus)
display(predicted.probabilities.to_pandas().round(2))
display(predicted)
