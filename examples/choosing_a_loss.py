# %% [markdown]
# # Choosing a loss
#
# The partition to report is the one of minimum posterior expected loss, so the loss decides what "best" means. Choose
# it by what the partition is for, before you see the results, and report it. For the velocities of 82 galaxies, three
# losses differ in a few galaxies:

# %%
import numpy as np
import pandas as pd

import posterior_consensus as pc

draws = pc.as_partition_draws(pc.load_example("galaxies"))  # of a Dirichlet process mixture
found = {loss: pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False) for loss in pc.LOSSES}
some = {loss: found[loss] for loss in ("vi", "binder", "information_distance")}
# Figure: Flows of galaxies between the partitions of minimum expected VI, Binder's loss and ID: the large clusters
# stay, and small ones are split off under Binder's loss and ID.
ax = pc.plot_alluvial(some)

# %% [markdown]
# | your goal | loss |
# |---|---|
# | one partition to describe and plot | `"vi"`, the default |
# | a decision for each pair, as in record linkage: are these two items in one cluster? | `"binder"` |
# | a false split costs a, a false merge 2 - a | `pc.binder(a=...)` or `pc.vi(a=...)` |
# | values on one scale, for posteriors of different sizes | `"nvi"`, `"nmi"`, `"nid"` or `"jaccard"`, from 0 to 1 |
# | values corrected for chance | `"one_minus_ari"`: 0 if equal, about 1 by chance, above 1 if worse |
# | the number of clusters is given | any, with `n_clusters=...` |
# | clusters although VI joins all items, because the draws are noisy | `"binder"` with `tau="auto"`; report it |
# | only a similarity matrix, no draws | `"binder"`, `"vi_lower_bound"` or `"pear"` |
#
# VI is the variation of information, PEAR the posterior expected adjusted Rand index. In the figure, ID is the
# information distance.
#
# ## Why not the most probable partition?
#
# It is optimal under the loss that is 0 for the true partition and 1 for any other. This loss treats a partition that
# misplaces one galaxy like one that misplaces all. The most probable partition also cannot be estimated, because hardly
# any partition is sampled twice:

# %%
partitions, counts = np.unique(draws.labels, axis=0, return_counts=True)
print(f"{draws.n_draws:,} draws: {len(partitions):,} different partitions; the commonest occurs {counts.max()} times")

# %% [markdown]
# The draw of highest posterior density (MAP) adds the densities of the parameters to this problem. The losses here
# measure how far a partition is from the draws, and average that distance over all of them.

# %% [markdown]
# ## What each loss does

# %%
table = pd.DataFrame(
    {
        "sizes": [" ".join(map(str, sorted(best.cluster_sizes.values, reverse=True))) for best in found.values()],
        "expected loss": [best.expected_loss for best in found.values()],
        "expected VI": pc.expected_loss(draws, list(found.values()), loss="vi")["expected_loss"].values,
        "expected binder": pc.expected_loss(draws, list(found.values()), loss="binder")["expected_loss"].values,
    },
    index=pd.Index(found, name="loss"),
)
table.round(4)

# %% [markdown]
# All have nearly the same large clusters. They differ in a few galaxies at the edges:
#
# - **VI**, one minus the adjusted Rand index (`one_minus_ari`) and the Jaccard distance give six clusters.
# - **Binder's loss** counts pairs. An item whose mean similarity to every cluster is below 1/2 becomes a singleton.
#   Expect small clusters, sometimes more of them than in any draw.
# - **The information distance** (`information_distance`) **and the normalized losses of information** (`nvi`, `nmi`,
#   `nid`) give one to three singletons.
#
# The column *expected loss* has a scale in each row, so compare partitions under one loss only. The difference of two
# expected losses has its own Monte Carlo standard error, because both use the same draws. `clear` marks differences
# above two of these errors, with an allowance for partitions chosen on the same draws, which look better than they are.

# %%
pc.compare_partitions(draws, some, loss="vi")

# %% [markdown]
# Both are clearly worse under VI. Does the choice matter? Little, compared with the uncertainty of the posterior:

# %%
between = pc.partition_loss(list(some.values()), loss="vi")
radius = pc.credible_ball(draws, found["vi"]).radius
print(f"at most {float(between.max()):.2f} bits between these partitions; radius of the 95% ball {radius:.2f} bits")

# %% [markdown]
# ## Coarser or finer
#
# Binder's loss joins two items, considered alone, if their posterior similarity exceeds the pair threshold tau. Its
# default is 1/2; `pc.binder(tau=...)` and `pc.binder(a=...)` with tau = 1 - a/2 are the same loss. The path shows the
# partitions found for thresholds from 0.05 to 0.95. Its line is thick where the partition does not change.

# %%
path = pc.loss_path(draws, loss="binder", random_seed=1, progressbar=False)
# Figure: Number of clusters by pair threshold tau: from 4 at 0.05 it is 6 from about 0.15 to 0.45, and rises
# beyond.
ax = path.plot()

# %% [markdown]
# `tau="auto"` calibrates the threshold, so the posterior itself chooses the loss. That helps if draws are so noisy that
# Binder's loss with tau = 1/2 gives singletons, or VI one cluster. Report it: the threshold is an estimate, and results
# under it are not comparable with results under a loss that was fixed beforehand.

# %%
auto = pc.consensus_partition(draws, loss="binder", tau="auto", random_seed=1, progressbar=False)
auto

# %%
print(f"calibrated threshold: {auto.threshold.tau:.2f}")

# %% [markdown]
# ## A given number of clusters
#
# `pc.loss_by_n_clusters` computes the minimum found for each number, and its difference from the overall minimum.

# %%
by_number = pc.loss_by_n_clusters(draws, random_seed=1, progressbar=False)
# Figure: Minimum expected VI by number of clusters, smallest at 6, above the posterior of the number of clusters,
# whose mode is 8.
ax = by_number.plot()

# %% [markdown]
# [The page on losses](../background/losses.md) has the formulas, ranges and sources of all losses.
