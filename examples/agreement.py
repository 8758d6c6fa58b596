# %% [markdown]
# # Do chains differ by noise, or are they in different modes?
#
# Several chains, or several analysts, each give a partition of the same items, and the partitions differ. Is this the
# noise of searches and of few draws, or are there different modes? This tutorial finds the items that all draws
# co-cluster, measures agreement, and shows how the estimates merge if disagreement is penalized.
#
# The posterior comes from a Dirichlet process mixture for the velocities of 82 galaxies, as in [the tutorial on
# losses](galaxies), with four long chains. A fifth chain comes from [a sampler that has not converged](not_converged).

# %%
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc


def draws_in(name, variable):
    with xr.open_datatree(DATA / f"{name}.nc", engine="h5netcdf") as file:
        return pc.as_partition_draws(file.load(), variable)


draws = draws_in("galaxies", "z")
stray = draws_in("galaxies_not_converged", "z").isel(chain=1)

# %% [markdown]
# ## Items that all draws co-cluster
#
# A stable component is a set of items that are connected by pairs co-clustered in at least a given share of the draws,
# the level. At level 1 all draws co-cluster them. Some partition of minimum expected loss keeps such sets whole (for
# Binder's loss, VI and the misclassification distance). No two of these galaxies are co-clustered in all 4,000 draws. A
# lower level shows more.

# %%
display(pc.stable_components(draws, 0.8))

# %%
ax = pc.plot_stable_components(pc.stable_components(draws, 0.8))

# %% [markdown]
# From level 0.04 to 0.47 four components stay as they are: the seven slow galaxies, the three fast ones, the two near
# 16 and the 70 others. Above 0.47 they split. `linkage="complete"` requires the level for every pair of items in a
# component, and not only for a chain of pairs.

# %%
display(pc.stable_components(draws, 0.8, linkage="complete").n_components)

# %% [markdown]
# ## How much do partitions agree?
#
# The Jaccard index of two partitions is the number of pairs co-clustered in both, divided by the number co-clustered in
# either. Here is its mean over all pairs of the five chains' consensus partitions.

# %%
chains = {f"chain {c}": draws.isel(chain=c) for c in range(4)}
five = chains | {"another sampler": stray}
display(
    pc.agreement.averaged_jaccard(
        [pc.consensus_partition(one, random_seed=1, progressbar=False) for one in five.values()]
    )
)

# %% [markdown]
# One number does not explain the difference. In `agreement_path`, each chain has its own estimate, and disagreement
# with the others is penalized. Differences due to noise vanish under a small penalty. Chains in different modes keep
# different estimates until the others outweigh their own draws. The columns call the penalty weight a price.

# %%
display(pc.agreement.agreement_path(chains, random_seed=1, progressbar=False))

# %% [markdown]
# The four chains find the same partition without a penalty. The fifth chain changes this:

# %%
path = pc.agreement.agreement_path(five, random_seed=1, progressbar=False)
display(path)

# %%
axes = pc.agreement.plot_agreement_path(path)

# %% [markdown]
# The averaged index does not change up to a weight of 0.5. Then it jumps, at the cost of the fifth chain only: its own
# expected loss about doubles. `path.groups` has the groups, and `path.labels` each chain's estimate at each weight.

# %%
display(path.groups)

# %% [markdown]
# With few draws the result differs. Take ten draws of each chain: the estimates differ, and a small penalty merges them
# at almost no cost in expected loss.

# %%
few = pc.agreement.agreement_path(
    draws.isel(draw=slice(None, None, 100)), loss="binder", random_seed=1, progressbar=False
)
print(few.verdict)

# %% [markdown]
# ## A consensus of a few partitions
#
# Stable component consensus clustering (`method="sccc"`) is made for few partitions, such as one for each chain. Large
# components that differ in many partitions are the seeds of clusters, and the others join the nearest seed. The gap is
# the number of partitions in which two seeds must differ. If none is given, all gaps are tried, and `info` has the
# result of each.

# %%
estimates = pc.as_partition_draws(path.labels.sel(price=0.0).values)
best = pc.consensus_partition(estimates, method="sccc", progressbar=False)
display((best.info.n_clusters, best.info.expected_losses, best.info.stability))

# %% [markdown]
# ## Co-clustering: rows and columns that explain each other
#
# The idea comes from a paper on tables of counts, such as words in documents. There the objective is the mutual
# information between clusters of rows and clusters of columns. `cocluster` makes several clusterings of rows and
# columns and increases their agreement. Here the rows are 900 handwritten digits, the columns 64 pixels, and the counts
# their ink.

# %%
from sklearn.datasets import load_digits

digits = load_digits()
found = pc.agreement.cocluster(
    digits.data[:900], n_row_clusters=10, n_column_clusters=16, random_seed=1, progressbar=False
)
display(found)

# %% [markdown]
# Round 0 is ten pairs of clusterings, each optimized separately. Four rounds later they agree far better. The row
# clusterings are draws like any others, so that every other function takes them:

# %%
rows = pc.consensus_partition(found.row_draws, loss="binder", method="sccc", n_clusters=10, progressbar=False)
display((pc.stable_components(found.row_draws).n_components, rows.info.stability))

# %% [markdown]
# Most clusters of pixels are regions of the image, although the method does not know which pixels are neighbours.

# %%
import matplotlib.pyplot as plt

pixels = pc.consensus_partition(found.column_draws, loss="binder", method="sccc", n_clusters=16, progressbar=False)
image = plt.matshow(pixels.labels.values.reshape(8, 8), cmap="tab20")
