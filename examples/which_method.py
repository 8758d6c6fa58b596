# %% [markdown]
# # Which method for my posterior?
#
# Greedy search under your loss, the default. Three methods find nearly the same partition of 82 galaxies, by every
# tenth draw of their posterior:

# %%
import warnings

import pandas as pd

import posterior_consensus as pc

draws = pc.as_partition_draws(pc.load_example("galaxies"), "z").isel(draw=slice(None, None, 10))
methods = "greedy", "hierarchical", "rpm_em"
three = {m: pc.consensus_partition(draws, method=m, random_seed=1, progressbar=False) for m in methods}
# Figure: Flows of galaxies between the partitions of three methods, nearly the same.
ax = pc.plot_alluvial(three)

# %% [markdown]
# No other method finds a partition of smaller expected loss than greedy search: six of them reach its 0.844 bits, the
# worst 1.150. If draws are noisy copies of one partition, such as repeated clusterings, `rpm_em` also estimates the
# noise, the share of labels that are random. No method makes a wide posterior narrow: report the credible ball and the
# uncertain items.
#
# ## All methods on two posteriors
#
# The methods optimize different criteria. Greedy search minimizes an expected loss, k-means (`basic`, `kcc`) squared
# distances, `cspa` and `hbgf` the cut of a graph. `cc_pivot` compares similarities with a threshold. `rpm_em` fits the
# random perturbation model, of noisy copies. Every method gets variation of information (VI) as the loss. Most try
# several numbers of clusters, and keep the one of smallest expected VI. The exceptions are `boem`, which minimizes
# Binder's loss, and `rpm_em`, `align_and_vote` and `cc_pivot`, whose [own criteria](../background/search.md) lead to a
# number. Three methods are left out: `exact` needs Binder's loss, `enumeration` at most ten items, and `sdp` is the
# slowest.


# %%
def compare(draws):
    """Expected VI and Binder loss, and number of clusters, of the partition that each method finds."""
    rows = {}
    for method in pc.METHODS:
        if method in ("exact", "enumeration", "sdp"):
            continue
        found = pc.consensus_partition(draws, method=method, random_seed=1, progressbar=False)
        binder = pc.expected_loss(draws, found, loss="binder")["expected_loss"].item()
        rows[method] = (found.expected_loss, binder, found.n_clusters)
    return pd.DataFrame.from_dict(rows, "index", columns=["expected VI", "expected Binder", "clusters"])


compare(draws).round(4)

# %% [markdown]
# All find the same partition of 30 irises, whose posterior is narrow, so one row remains without its repetitions:

# %%
irises = pc.as_partition_draws(pc.load_example("iris"), "z").isel(draw=slice(None, None, 10))
compare(irises).round(4).drop_duplicates()

# %% [markdown]
# A partition that is worse under VI can be better under Binder's loss: each method has its own criterion. For both
# losses, `pc.certify` bounds the distance from the optimum.
#
# ## Simulations with known truth
#
# Each draw is a noisy copy of one partition, in which 55% of the items get a random cluster. There are 100 items, 20
# draws and six clusters, of equal probability or with one of 50, 75 and 90% of the items. `python -m benchmarks
# cluster_graphs` has all settings of [the paper](../developers/papers.md). Methods that take the number of clusters are
# given it. If one cluster has 90% of the items, `rpm_em` finds five clusters and warns that the draws distinguish no
# more. The adjusted Rand index is 1 for the truth, and 0 on average by chance.

# %%
GIVEN = ("basic", "spectral", "kcc", "align_and_vote", "rpm_em", "cspa", "mcla", "hbgf", "nmf")
indices = pd.DataFrame(index=GIVEN)
for sizes in ("balanced", 0.5, 0.75, 0.9):
    made = pc.simulate.random_perturbation(100, 6, n_draws=20, noise=0.55, sizes=sizes, random_seed=1)
    for method in GIVEN:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The partition has 5 clusters, not 6")
            found = pc.consensus_partition(made.draws, method=method, n_clusters=6, random_seed=1, progressbar=False)
        indices.loc[method, str(sizes)] = 1 - pc.partition_loss(found, made.truth, loss="one_minus_ari")
indices.round(2)

# %% [markdown]
# Most methods split a dominant cluster: k-means in any space and nonnegative factors (`nmf`) make clusters of similar
# size. `rpm_em` and `align_and_vote` do best, because these draws satisfy their assumptions.
#
# ## Is the difference larger than Monte Carlo error?
#
# No: 0.008 bits, MCSE 0.005.

# %%
pc.compare_partitions(draws, three)
