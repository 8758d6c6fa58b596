# %% [markdown]
# # Analysts and chains disagree: who shares a view, and who is unreliable?
#
# Four chains and three analysts have clustered the same 120 sites. The chains sample a mixture model. The analysts
# stated for some pairs of sites that they must be in one cluster, or cannot be. They disagree. Does somebody err, or do
# they consider different structures? A single consensus would answer neither question.
#
# The page simulates its data, so that the truth is known. Sites have a climate and a soil, three kinds of each, and
# four measurements.

# %%
import numpy as np
import pandas as pd
import xarray as xr
from tutorial import display

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

# %% [markdown]
# The chains cluster by climate. In each draw a tenth of the sites get a random cluster. Chain 3 is stuck at another
# partition.

# %%


def noisy(labels, share, size):
    """Draws of labels, a share of them at random."""
    return np.where(rng.random((size, n_sites)) < share, rng.integers(3, size=(size, n_sites)), labels)


stuck = rng.integers(3, size=n_sites)
draws = xr.DataArray(
    np.stack([noisy(labels, 0.1, 50) for labels in (climate, climate, climate, stuck)]),
    {"chain": [f"chain {k}" for k in range(4)], "site": sites},
    ("chain", "draw", "site"),
)

# %% [markdown]
# The analysts' constraints are a table with a row for each. Ann and Bo cluster by soil. Ann errs in a tenth of her
# constraints, Bo in a fourth. Cy clusters by climate, and errs in 15% of the constraints.

# %%


def asked(name, labels, wrong, number):
    """What somebody says of pairs of sites at random."""
    i, j = rng.integers(n_sites, size=(2, number))
    i, j = i[i != j], j[i != j]
    together = (labels[i] == labels[j]) ^ (rng.random(i.size) < wrong)
    return pd.DataFrame({"expert": name, "i": sites[i], "j": sites[j], "kind": np.where(together, "must", "cannot")})


table = pd.concat([asked("Ann", soil, 0.1, 400), asked("Bo", soil, 0.25, 400), asked("Cy", climate, 0.15, 400)])
display(table.head())

# %% [markdown]
# ## Everybody is an expert
#
# `as_constraints` takes the table. It takes the draws, too: each chain is an expert, with its own random pairs, and
# each constraint comes from one of its draws. The sum joins both.

# %%
said = pc.experts.as_constraints(table, sites) + pc.experts.as_constraints(draws, sites, n_pairs=400, random_seed=1)
display(said)

# %% [markdown]
# ## Who shares a view
#
# `expert_views` groups the experts into views, each with its own partition, and estimates the reliability of each
# expert. With measurements, the clusters depend on them by logistic regression. `n_clusters` is the largest number of
# clusters of a view: clusters that are not needed stay empty.

# %%
found = pc.experts.expert_views(said, measured, n_clusters=5, random_seed=1, progressbar=False)
display(found)

# %%
ax = pc.experts.plot_experts(found)

# %% [markdown]
# The model was not given climate or soil. It finds who clusters by which, and that Bo errs more than Ann. No
# measurement explains the partition of chain 3. Its sensitivity and specificity are near one half, and its weight is
# near 0. So chain 3 is not a view of these sites, but a chain to check with `diagnose`.
#
# ## The partition of each view

# %%
ax = pc.experts.plot_expert_views(found)

# %% [markdown]
# The line marks the probability of each site's most probable cluster. How close is each view to its truth? The adjusted
# Rand index is 1 if they are equal:

# %%
display(
    pd.DataFrame(
        {
            name: [1 - pc.partition_loss(view, truth, loss="omari") for view in found.labels]
            for name, truth in (("climate", climate), ("soil", soil))
        },
        index=pd.RangeIndex(found.n_views, name="view"),
    ).round(2)
)

# %% [markdown]
# With measurements, new sites can be allocated in both views:

# %%
new = pd.DataFrame([[0, 2.5, 2.2, -1.3], [-2.2, -1.3, 0, 2.5]], index=["new 1", "new 2"], columns=measured.columns)
display(found.predict(new)["labels"].to_pandas())

# %% [markdown]
# ## Without measurements
#
# Without measurements each site's cluster is free, and only the constraints determine it. Now chain 3 has a view: it
# agrees with itself, and no measurements contradict its partition.

# %%
free = pc.experts.expert_views(said, n_clusters=5, random_seed=1, progressbar=False)
display(free)

# %% [markdown]
# A view with a single expert has no support beyond that expert.
