# %% [markdown]
# # Chains and analysts disagree: is it noise, another view, or an error?
#
# One of four chains is in another mode (`agreement_path`), and no measurement supports it; of three analysts, two share
# a view, and one of these is careless (`expert_views`). Partitions that differ by noise, which is chance, approach each
# other under a small penalty on disagreement, those of different modes only under a large one. With constraints on
# pairs of items, experts are grouped by the partition that they share, and their reliability is estimated.
#
# The data are simulated. Of 120 sites, each has one of three climates and one of three soils, and four measurements.
# Chains cluster by climate, with a tenth of the sites at random in each draw. Chain 3 is stuck in another partition.

# %%
import numpy as np
import pandas as pd
import xarray as xr

import posterior_consensus as pc

rng = np.random.default_rng(3)
n_sites = 120
sites = np.array([f"site {k:03}" for k in range(n_sites)])
climate, soil = rng.permutation(np.arange(n_sites) % 3), rng.permutation(np.arange(n_sites) % 3)
corners = np.array([[0.0, 2.5], [2.2, -1.3], [-2.2, -1.3]])
measured = pd.DataFrame(
    np.hstack([corners[climate], corners[soil]]) + rng.normal(size=(n_sites, 4)),
    index=pd.Index(sites, name="site"),
    columns=["rain", "frost", "clay", "lime"],
)


def noisy(labels, share, size):
    """Draws of labels, a share of them at random."""
    return np.where(rng.random((size, n_sites)) < share, rng.integers(3, size=(size, n_sites)), labels)


stuck = rng.integers(3, size=n_sites)
labels = xr.DataArray(
    np.stack([noisy(labels, 0.1, 50) for labels in (climate, climate, climate, stuck)]),
    {"chain": [f"chain {k}" for k in range(4)], "site": sites},
    ("chain", "draw", "site"),
)
by_chain = {chain: labels.sel(chain=chain).values for chain in labels["chain"].values}
path = pc.agreement.agreement_path(by_chain, random_seed=1, progressbar=False)
# Figure: Averaged Jaccard index of the chains by penalty weight, which reaches 1 at weight 1, and the increase of each
# chain's own expected VI, which is largest for chain 3.
axes = path.plot()

# %% [markdown]
# ## Noise, or another mode?
#
# In `agreement_path`, each chain has its own partition. The objective is the mean of their expected losses, plus half
# the penalty weight (`price`) times the disagreement, the mean distance between two of the partitions.

# %%
path

# %% [markdown]
# The averaged Jaccard index is the mean over pairs of partitions of the number of item pairs co-clustered in both,
# divided by the number co-clustered in either. `averaged_jaccard` computes it for any partitions. `path.groups` has
# the groups, `path.labels` each chain's partition at each weight. With four draws of each of the other chains, the
# partitions differ too, but by noise:

# %%
few = pc.agreement.agreement_path(labels[:3, :4], loss="binder", random_seed=1, progressbar=False)
print(few.verdict)
few.to_dataframe()["averaged_jaccard"].loc[[0, 0.1, 1]].round(2)

# %% [markdown]
# ## Constraints of analysts
#
# Three analysts stated for pairs of sites that they must be in one cluster, or cannot be. Ann and Bo cluster by soil,
# and err in 10% and 25% of their constraints. Cy clusters by climate, and errs in 15%.

# %%


def asked(name, truth, wrong, number):
    """Constraints on pairs of sites at random."""
    i, j = rng.integers(n_sites, size=(2, number))
    i, j = i[i != j], j[i != j]
    must = (truth[i] == truth[j]) ^ (rng.random(i.size) < wrong)
    return pd.DataFrame({"expert": name, "i": sites[i], "j": sites[j], "kind": np.where(must, "must", "cannot")})


table = pd.concat([asked("Ann", soil, 0.1, 400), asked("Bo", soil, 0.25, 400), asked("Cy", climate, 0.15, 400)])
table.head(3)

# %% [markdown]
# `as_constraints` takes this table. It also takes the draws: each chain is an expert, and each of its constraints comes
# from one draw.

# %%
said = pc.experts.as_constraints(table, sites) + pc.experts.as_constraints(labels, sites, n_pairs=400, random_seed=1)
said

# %% [markdown]
# ## Who shares a view, and who is reliable?
#
# `expert_views` groups the experts into views, each with its own partition. With measurements, clusters depend on them
# by logistic regression. `n_clusters` is the largest number of clusters of a view; some can stay empty.

# %%
found = pc.experts.expert_views(said, measured, n_clusters=5, n_starts=5, random_seed=1, progressbar=False)
found

# %%
# Figure: Sensitivity and specificity of each chain and analyst with 90% intervals, coloured by view; those of chain
# 3 are no better than chance.
ax = found.plot()

# %% [markdown]
# The model finds who clusters by which, and that Bo errs more than Ann. The sensitivity and specificity of chain 3 add
# up to about 1, as if it guessed, and its weight, what one of its constraints counts, is near 0: no measurement
# explains its partition. Check such a chain with `pc.diagnose`.

# %%
# Figure: A strip of the sites for each of the two views, coloured by cluster; the clusters of one view cut across
# those of the other.
ax = pc.experts.plot_expert_views(found)

# %% [markdown]
# The line marks the probability of each site's most probable cluster. The adjusted Rand index of a view with its truth
# is 1 if they are equal:

# %%
pd.DataFrame(
    {
        name: [1 - pc.partition_loss(view, truth, loss="one_minus_ari") for view in found.labels]
        for name, truth in (("climate", climate), ("soil", soil))
    },
    index=pd.RangeIndex(found.n_views, name="view"),
).round(2)

# %% [markdown]
# New sites are allocated in both views:

# %%
new = pd.DataFrame([[0, 2.5, 2.2, -1.3], [-2.2, -1.3, 0, 2.5]], index=["new 1", "new 2"], columns=measured.columns)
found.predict(new)["labels"].to_pandas()

# %% [markdown]
# Without measurements, only constraints determine the clusters. Chain 3 then has a view of its own, because it agrees
# with itself. A view with a single expert has no support beyond that expert.

# %%
free = pc.experts.expert_views(said, n_clusters=5, random_seed=1, progressbar=False)
free
