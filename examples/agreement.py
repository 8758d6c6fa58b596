# %% [markdown]
# # Do chains differ by noise, or are they in different modes?
#
# Several chains, or several analysts, each give a clustering of the same items, and the clusterings differ. Is that
# the noise of searches and of few draws, or do they say different things? This tutorial measures agreement, finds
# what all draws keep together, and lets estimates come together at a price.
#
# The posterior is that of a Dirichlet process mixture for the velocities of 82 galaxies, as in [the tutorial on
# losses](galaxies), with four long chains. A fifth chain comes from [a sampler that has not
# converged](not_converged).

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
# ## What all draws keep together
#
# A stable component is a set of items that a share of the draws, the level, keep together. At level 1 all draws do.
# Some partition of least expected loss keeps such sets whole (for Binder's loss, VI and the misclassification
# distance). No two of these galaxies are together in all 4,000 draws. At a lower level there is more to see.

# %%
display(pc.stable_components(draws, 0.8))

# %%
ax = pc.plot_stable_components(pc.stable_components(draws, 0.8))

# %% [markdown]
# From level 0.04 to 0.47 four components stay as they are: the seven slow galaxies, the three fast ones, the two
# near 16 and the 70 others. Above 0.47 they fall apart. `linkage="complete"` asks for the level between every two
# items of a component, and not only from one item to the next.

# %%
display(pc.stable_components(draws, 0.8, linkage="complete").n_components)

# %% [markdown]
# ## How much do clusterings agree?
#
# The Jaccard index of two clusterings is the share of pairs together in both, among the pairs together in either.
# Here is its mean over all pairs of the five chains' consensus partitions.

# %%
chains = {f"chain {c}": draws.isel(chain=c) for c in range(4)}
five = chains | {"another sampler": stray}
display(pc.averaged_jaccard([pc.consensus_partition(one, random_seed=1, progressbar=False) for one in five.values()]))

# %% [markdown]
# One number does not tell why. `agreement_path` does: each chain has an estimate of its own, and disagreement with
# the others has a price. Differences that are noise go away at a low price. Chains that say different things stay
# apart until the others outweigh their own draws.

# %%
display(pc.agreement_path(chains, random_seed=1, progressbar=False))

# %% [markdown]
# The four chains find the same partition by themselves. With the fifth it is different:

# %%
path = pc.agreement_path(five, random_seed=1, progressbar=False)
display(path)

# %%
axes = pc.plot_agreement_path(path)

# %% [markdown]
# The averaged index does not move up to a price of 0.5. Then it jumps, and the fifth chain alone pays: its own
# expected loss about doubles. `path.groups` has the groups, and `path.labels` each chain's estimate at each price.

# %%
display(path.groups)

# %% [markdown]
# Few draws look different. Take ten draws of each chain: the estimates differ, and a low price brings them together
# at next to no cost.

# %%
few = pc.agreement_path(draws.isel(draw=slice(None, None, 100)), loss="binder", random_seed=1, progressbar=False)
print(few.verdict)

# %% [markdown]
# ## A few clusterings become one
#
# Stable component consensus clustering (`method="sccc"`) is made for few clusterings, such as those of the chains.
# Large components that differ in many clusterings are the seeds of clusters, and the others join the nearest seed. The
# gap is the number of clusterings in which two seeds must differ. If none is given, all gaps are tried, and `info` says
# what each gave.

# %%
estimates = pc.as_partition_draws(path.labels.sel(price=0.0).values)
best = pc.consensus_partition(estimates, method="sccc", progressbar=False)
display((best.info.n_clusters, best.info.expected_losses, best.info.stability))

# %% [markdown]
# ## Co-clustering: rows and columns that explain each other
#
# The idea comes from a paper on tables of counts, such as words in documents. There the objective is the mutual
# information between clusters of rows and clusters of columns. `cocluster` makes several clusterings of both sides
# and lets them agree. Here the rows are 900 handwritten digits, the columns 64 pixels, and the counts their ink.

# %%
from sklearn.datasets import load_digits

digits = load_digits()
found = pc.cocluster(digits.data[:900], n_row_clusters=10, n_column_clusters=16, random_seed=1, progressbar=False)
display(found)

# %% [markdown]
# Round 0 is ten pairs of clusterings, each improved by itself. Four rounds later they agree far better. The row
# clusterings are draws like any others, so that every other function takes them:

# %%
rows = pc.consensus_partition(found.row_draws, loss="binder", method="sccc", n_clusters=10, progressbar=False)
display((pc.stable_components(found.row_draws).n_components, rows.info.stability))

# %% [markdown]
# Most clusters of pixels are regions of the image, though nothing was said of which pixels are neighbours.

# %%
import matplotlib.pyplot as plt

pixels = pc.consensus_partition(found.column_draws, loss="binder", method="sccc", n_clusters=16, progressbar=False)
image = plt.matshow(pixels.labels.values.reshape(8, 8), cmap="tab20")
