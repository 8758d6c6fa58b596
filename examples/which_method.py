# %% [markdown]
# # Which method for my posterior?
#
# The package has more than a dozen methods that turn draws into one partition. They optimize different criteria. Greedy
# search minimizes an expected loss, k-means on similarities minimizes squared distances, a threshold on similarities
# considers pairs, and graph cuts consider items, clusters or both. EM for the random perturbation model assumes that
# the draws are noisy copies of one true partition. Which partitions do they find for three posteriors, and with what
# expected loss?

# %%
import time
import warnings

import arviz as az
import pandas as pd
from sample_wine import build_model
from tutorial import DATA, display

import posterior_consensus as pc

METHODS = [method for method in pc.METHODS if method not in ("exact", "enumeration")]  # these search, those prove


def labels(name):
    posterior = az.from_netcdf(DATA / f"{name}.nc")["posterior"]
    return pc.as_partition_draws(posterior["z"].isel(draw=slice(None, None, 4)))


wines = az.from_netcdf(DATA / "wine.nc")
model = build_model(wines["observed_data"]["y"])
posteriors = {
    "galaxies": labels("galaxies"),
    "irises": labels("iris"),
    "wines": pc.allocation_probabilities(model, wines, progressbar=False),
}
display(
    pd.DataFrame(
        {
            name: {"items": d.n_items, "draws": d.n_draws, "clusters, median": int(pd.Series(d.n_clusters).median())}
            for name, d in posteriors.items()
        }
    ).T
)

# %% [markdown]
# The galaxies have a wide posterior: clusters overlap, and no partition is near most draws. The thirty irises have a
# narrow one. The wines, whose labels were marginalized, are in between. For the galaxies and the irises, every fourth
# draw is enough.
#
# Every method gets variation of information (VI) as the loss. Methods that need a number of clusters choose it by this
# loss. The time includes compilation if a method runs for the first time.


# %%
def compare(draws):
    """Expected VI and Binder loss, clusters and seconds of every method, and all partitions found."""
    rows, partitions = {}, set()
    for method in METHODS:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = pc.consensus_partition(draws, method=method, random_seed=1, progressbar=False)
        seconds = time.perf_counter() - began
        binder = pc.expected_loss(draws, found, loss="binder")["expected_loss"].item()
        rows[method] = (found.expected_loss, binder, found.n_clusters, seconds)
        partitions.add(tuple(found.labels.values))
    table = pd.DataFrame.from_dict(rows, "index", columns=["expected VI", "expected Binder", "clusters", "seconds"])
    return table, partitions


tables, answers = {}, {}
for name, draws in posteriors.items():
    tables[name], answers[name] = compare(draws)
display(tables["galaxies"].round(4))

# %%
display(tables["irises"].round(4))

# %%
display(tables["wines"].round(4))

# %% [markdown]
# Greedy search has the minimum expected VI in each table, as it should: it minimizes it over all partitions. Other
# methods may find the same partition. The importance of the choice depends on the posterior. How many different
# partitions do the methods find, and how far is the largest expected VI above the minimum?

# %%
display(
    pd.DataFrame(
        {
            name: {
                "methods": len(METHODS),
                "different answers": len(answers[name]),
                "largest VI, above the least by": f"{table['expected VI'].max() / table['expected VI'].min() - 1:.0%}",
            }
            for name, table in tables.items()
        }
    ).T
)

# %% [markdown]
# For the narrow posterior nearly all methods agree. For the wide one there are many partitions, and some are much worse
# under VI. A partition that is worse under VI can be better under Binder's loss: each method has its own criterion.
#
# ## Simulations with known truth
#
# For a posterior the true partition is unknown. For draws of the random perturbation model it is known: each draw is a
# noisy copy of one partition, in which 55% of the items get a random cluster. These are the eight settings of [the
# consensus-clustering paper](../developers/papers.md): six clusters, of equal probability in sets 1 to 4; in
# sets 5 to 8 one cluster has 50, 75, 80 and 90% of the items. Methods that take the number of clusters are given it.
# How close are they to the truth? The adjusted Rand index is 1 for the truth, and 0 on average by chance.

# %%
SETS = {  # items, draws, sizes
    "set 1": (100, 20, "balanced"),
    "set 2": (100, 200, "balanced"),
    "set 3": (500, 20, "balanced"),
    "set 4": (500, 200, "balanced"),
    "set 5": (100, 20, 0.5),
    "set 6": (100, 20, 0.75),
    "set 7": (100, 20, 0.8),
    "set 8": (100, 20, 0.9),
}
TOLD = ("basic", "spectral", "kcc", "align_and_vote", "rpm_em", "cspa", "mcla", "hbgf", "nmf")


def adjusted_rand_index(method, items, n_draws, sizes):
    """Mean over three simulations."""
    found = []
    for seed in range(3):
        made = pc.simulate.random_perturbation(items, 6, n_draws=n_draws, noise=0.55, sizes=sizes, random_seed=seed)
        answer = pc.consensus_partition(
            made.draws, loss="vi", method=method, n_clusters=6, random_seed=1, progressbar=False
        )
        found.append(1 - pc.partition_loss(answer, made.truth, loss="omari"))
    return sum(found) / len(found)


display(
    pd.DataFrame(
        {name: {method: adjusted_rand_index(method, *setting) for method in TOLD} for name, setting in SETS.items()}
    ).round(2)
)

# %% [markdown]
# With clusters of equal probability, all of them find the truth, or nearly. With a dominant cluster most of them split
# it: k-means in any space and nonnegative factors (`nmf`) make clusters of similar size. Among the methods that cut
# graphs, `mcla` is best. It clusters the draws' clusters, and the dominant cluster is similar in all draws. `rpm_em`
# and `align_and_vote` are best, because these draws satisfy their assumptions. Another method of this literature, HGPA,
# needs a hypergraph partitioner; the package leaves it out. `python -m benchmarks cluster_graphs` has three levels of
# noise and more simulations.
#
# A rule of thumb:
#
# - **You know your loss**: greedy search, for any posterior. For Binder's loss `certify` bounds how far its result is
#   from the optimum.
# - **Many items**: greedy search, too. [The benchmarks](../developers/benchmarks.md) have times of greedy search and
#   other methods.
# - **Draws that are noisy copies of one partition**, such as repeated clusterings: `rpm_em`, which also estimates the
#   noise. The closest pairwise method is Binder's loss with `tau="auto"`.
# - **A wide posterior**: no method makes it narrow. Report the credible ball and the uncertain items with any
#   partition.
#
# Is the difference between two partitions larger than Monte Carlo error? `compare_partitions` shows it.

# %%
draws = posteriors["galaxies"]
three = {m: pc.consensus_partition(draws, method=m, random_seed=1) for m in ("greedy", "hierarchical", "rpm_em")}
display(pc.compare_partitions(draws, three))

# %%
ax = pc.plot_alluvial(three)
