# %% [markdown]
# # From scored pairs to clusters of records
#
# A linkage program such as splink gives each pair of records a probability that both are of one person. Which records
# are of one person? `pc.consensus_partition` searches for the clusters with the smallest expected number of wrong
# pairs. It says which components of linked records are proven to be optimal: here, all.
#
# The 1,000 records are invented, so that the truth is known. Names are misspelt, values are missing or out of date, and
# families share surnames and e-mail addresses. `score_persons.py` made them and scored pairs by the model of Fellegi
# and Sunter.  [From splink](../from_splink.md) has the same steps by name.

# %%
import numpy as np
import pandas as pd
from scipy import sparse
from scipy.cluster import hierarchy
from scipy.sparse import csgraph
from scipy.spatial.distance import squareform

import posterior_consensus as pc

persons = pc.load_example("persons")
scores = pc.load_example("pairs")
pairs = pc.as_pair_similarity(scores, items=persons[["source_dataset"]].reset_index())
summary = pc.summarize(pairs, random_seed=1, progressbar=False)
# Figure: Four panels: number of clusters of each size, numbers of joined and separated pairs by score, expected
# precision and recall by threshold, and the closest calls by name.
axes = summary.plot()

# %%
fields = ["given_name", "surname", "date_of_birth", "city", "email"]
persons[fields].head(4)

# %%
scores.head(4)

# %% [markdown]
# ## One call
#
# Above, `pc.as_pair_similarity` reads the table. `items` adds the records that are in no pair, and the data set of each
# record.

# %%
summary

# %% [markdown]
# `to_dataframe` has a row for each record: its cluster, its mean probability to the rest of the cluster, and the most
# probable partner outside.

# %%
summary.to_dataframe().head(5).round(3)

# %% [markdown]
# ## A bad link
#
# Connected components join all records that a chain of links connects. One wrong link is enough to join two persons:
# Helen Murphy, once Dixon, has the e-mail address of Poppy Dixon. The optimum separates them, because the other pairs
# have low scores.

# %%
left, right = (persons.index.get_indexer(scores[f"unique_id_{end}"]) for end in "lr")
probability = scores["match_probability"].to_numpy()


def components(linked):
    """Join all pairs that are linked."""
    links = sparse.coo_array((np.ones(np.sum(linked)), (left[linked], right[linked])), 2 * [len(persons)])
    return csgraph.connected_components(links, directed=False)[1]


component = components(probability >= 0.5)
helen = component == component[persons.index.get_loc("r0040")]
persons.loc[helen, fields].assign(cluster=summary.labels.values[helen]).sort_values("cluster")

# %% [markdown]
# ## Compared with the truth
#
# Linkage programs make connected components at a threshold, join each record with its best link, or use average
# linkage. Precision is the share of joined pairs that are of one person, recall the share of pairs of one
# person that are joined. The last column is the expected number of wrong pairs: pairs joined of two persons, and pairs
# separated of one.

# %%
truth = persons["person"].to_numpy()
N_PAIRS = len(persons) ** 2 / 2  # Binder's loss is a share of this


def best_links():
    """Join each record with its most probable partner, if the probability is at least 0.5."""
    order = np.argsort(-probability, kind="stable")
    _, first = np.unique(np.stack([left[order], right[order]], axis=1), return_index=True)  # where a record is first
    best = np.zeros(len(probability), bool)
    best[order[first // 2]] = True
    return components(best & (probability >= 0.5))


def average_linkage():
    """Join clusters whose mean probability reaches 0.5, the highest first."""
    distances = np.ones(2 * [len(persons)])
    distances[left, right] = distances[right, left] = 1 - probability
    np.fill_diagonal(distances, 0)
    return hierarchy.fcluster(hierarchy.average(squareform(distances)), 0.5, "distance")


def precision_recall(labels):
    """Precision, recall and F1 of the pairs that a partition joins."""
    table = pd.DataFrame({"joined": labels, "true": truth})
    both, joined, true = (
        np.sum(sizes * (sizes - 1)) for sizes in (table.value_counts(), *(table[name].value_counts() for name in table))
    )
    return both / joined, both / true, 2 * both / (joined + true)


def compare(partitions, pairs):
    """Table of partitions: precision, recall and F1, and the expected number of wrong pairs."""
    rows = {}
    for name, labels in partitions.items():
        wrong = N_PAIRS * float(pc.expected_loss(pairs, labels, loss="binder")["expected_loss"])
        rows[name] = [np.unique(labels).size, *precision_recall(labels), wrong]
    return pd.DataFrame(rows, ["clusters", "precision", "recall", "F1", "expected wrong pairs"]).T


partitions = {
    "connected components": component,
    "connected components at 0.95": components(probability >= 0.95),
    "best links": best_links(),
    "average linkage": average_linkage(),
    "optimum": summary.labels.values,
}
compare(partitions, pairs).round(3)

# %% [markdown]
# The optimum has the fewest expected wrong pairs, which is proven. It is much more precise than connected components at
# the same threshold. By F1 it is as good as best links, and average linkage is a little better. The scores are the
# reason: each is the probability of one pair by itself, and does not use that two records both match a third.
#
# ## Which threshold?
#
# Joining a wrong pair costs `tau / (1 - tau)` times as much as separating a right one. `pc.loss_path` has the optimum
# along `tau`, with the expected precision and recall of pairs.

# %%
path = pc.loss_path(pairs, loss="binder", values=np.arange(1, 10) / 10, random_seed=1, progressbar=False)
curve = path.to_dataframe()[["n_clusters", "precision", "recall"]]
true = [precision_recall(labels) for labels in path.partitions.values]
curve[["true precision", "true recall", "true F1"]] = true
curve.round(3)

# %% [markdown]
# The expected numbers are near the true ones. Precision is up to 0.05 too high, because members of one family get high
# scores. The summary has a second estimate, by products of odds within clusters, which is higher still. Both go by the
# scores alone, and errors may have either sign. F1 is highest at a threshold of 0.3: it makes up for scores that are
# low within a true cluster.
#
# ## Which pairs should a clerk look at?
#
# `pc.links` has the pairs that the partition decides against their score: for example, those that it separates although
# the score is above the threshold. The first is a mistake: the records are of one Robert Bailey, but his son of the
# same name has four, which attract one of them.

# %%
summary.links.against.head(3).round(3)

# %% [markdown]
# `review` lists the closest calls: pairs whose decision the other way raises the expected loss least. The increase is
# in expected wrong pairs, with everything else in the component chosen anew.

# %%
review = summary.links.review(40)
review[["first", "second", "probability", "joined", "increase"]].head(4).round(3)

# %% [markdown]
# A clerk looks at the 40 pairs; here the truth decides. The rows are constraints, and the partition is found again.

# %%
same = persons["person"].loc[review["first"]].to_numpy() == persons["person"].loc[review["second"]].to_numpy()
decided = pc.as_pair_similarity(pairs, must_link=review[same], cannot_link=review[~same])
reviewed = pc.consensus_partition(decided, random_seed=1, progressbar=False)
n_wrong = np.sum(same != review["joined"])
print(f"{same.sum()} of {same.size} pairs are of one person; the partition was wrong about {n_wrong} pairs")

# %% [markdown]
# ## One record of each data set
#
# Each data set has a person once. `max_per_source=1` keeps two records of one data set out of a cluster.


# %%
def one_to_one_links():
    """Join clusters in the order of their best links, if they have no data set in common."""
    source = persons["source_dataset"].to_numpy()
    clusters = [[record] for record in range(len(persons))]
    for at in np.argsort(-probability, kind="stable")[: np.sum(probability >= 0.5)]:
        one, other = clusters[left[at]], clusters[right[at]]
        if one is not other and not set(source[one]) & set(source[other]):
            one += other
            for record in other:
                clusters[record] = one
    return np.array([min(cluster) for cluster in clusters])


once = pc.as_pair_similarity(pairs, max_per_source=1)
one_to_one = pc.consensus_partition(once, random_seed=1, progressbar=False)
at_0_3 = pc.consensus_partition(once, loss=pc.binder(tau=0.3), random_seed=1, progressbar=False)
partitions = {
    "optimum": summary.labels.values,
    "after 40 decisions": reviewed.labels.values,
    "best links, one to one": one_to_one_links(),
    "optimum, one to one": one_to_one.labels.values,
    "optimum at 0.3, one to one": at_0_3.labels.values,
}
compare(partitions, pairs).round(3)

# %% [markdown]
# The constraint is information that the scores do not have: precision rises. Best links have the higher recall here,
# since they need one high score for each record and no others. At the threshold 0.3 the optimum has nearly the same F1.
# Expected wrong pairs are by the scores alone, so constraints raise their number.
#
# ## How many clusters are wrong?
#
# Scores alone do not say, as the first tables show. A clerk's answers on a sample of pairs do, whatever the scores are.
# `pc.audit` draws the pairs, with the fields of both records; here the truth answers.


# %%
def same_person(sample):
    """Whether the two records of each pair are of one person."""
    return persons["person"][sample["first"]].to_numpy() == persons["person"][sample["second"]].to_numpy()


audit = pc.audit(pairs, summary, n=300, fields=persons[fields], random_seed=1)
audited = audit.answered(same_person(audit.sample))
audited

# %% [markdown]
# Precision and recall have 95% intervals, which hold the true values here. [Matches that blocking
# lost](../from_splink.md#how-many-clusters-are-wrong) are in neither.

# %%
labels, sizes = summary.labels.values, persons["person"].value_counts()
precision, recall, _ = precision_recall(labels)
joined = recall * (sizes * (sizes - 1) / 2).sum()  # pairs of one person that are joined
missed = np.sum((truth[left] == truth[right]) & (labels[left] != labels[right]))
print(f"true precision {precision:.3f}, recall of pairs that were scored or joined {joined / (joined + missed):.3f}")

# %% [markdown]
# `exact precision` is the share of clusters that are a person, `exact recall` of persons that are a cluster. B-cubed
# averages over records.

# %%
records = pc.audit_records(pairs, summary, n=100, random_seed=1)
records.answered(same_person(records.sample))

# %% [markdown]
# `recalibrated` has scores that agree with the answers, and the answers as constraints.

# %%
recalibrated = pc.consensus_partition(audited.recalibrated(), random_seed=1, progressbar=False)
compare({"optimum": summary.labels.values, "after the audit": recalibrated.labels.values}, pairs).round(3)

# %% [markdown]
# ## For a paper
#
# `methods_text` has the sentences. `summary.to_html("report.html")` writes a report that lists the components, and
# `summary.to_csv("tables")` the tables.

# %%
print(summary.methods_text())
