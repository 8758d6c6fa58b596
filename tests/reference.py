"""The definitions, stated slowly and obviously: what the package must agree with.

Python and NumPy only; nothing here imports the package. Draws are arrays (n_draws, n_items) of labels, weights any
non-negative numbers.
"""

from collections import Counter
from itertools import combinations, permutations
from math import log2, sqrt

import numpy as np


def canonical(labels):
    """Labels numbered by first appearance from 0."""
    numbers = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in np.asarray(labels).tolist()])


def shares(draws, weights=None):
    """Posterior probability of each draw."""
    weights = np.ones(len(draws)) if weights is None else np.asarray(weights, float)
    return weights / weights.sum()


def similarity(draws, weights=None):
    """P(z_i = z_j | data) for every pair of items."""
    share = np.ones(len(draws), int) if weights is None else shares(draws, weights)
    together = np.zeros((len(draws[0]),) * 2, share.dtype)
    for draw, weight in zip(np.asarray(draws), share, strict=True):
        together += weight * np.equal.outer(draw, draw)
    return together / len(draws) if weights is None else together


# Losses of an estimate given a similarity matrix


def vi_lower_bound(estimate, similarities):
    """Wade and Ghahramani (2018), as mcclust.ext's VI.lb computes it."""
    total = 0.0
    for own, row in zip(estimate, similarities, strict=True):
        together = np.equal(estimate, own)
        total += log2(sum(together)) + log2(sum(row)) - 2 * log2(sum(together * row))
    return total / len(estimate)


def one_minus_pear(estimate, similarities):
    """One minus Fritsch and Ickstadt's (2009) index, as mcclust's pear computes it; 0 where that is 0/0."""
    pairs = list(combinations(range(len(estimate)), 2))
    ours = [float(estimate[i] == estimate[j]) for i, j in pairs]
    theirs = [similarities[i][j] for i, j in pairs]
    chance = sum(ours) * sum(theirs) / max(len(pairs), 1)
    best = (sum(ours) + sum(theirs)) / 2 - chance
    joint = sum(y * x for y, x in zip(ours, theirs, strict=True))
    return 0.0 if abs(best) < 1e-12 else 1 - (joint - chance) / best


def sum_of_squares(estimate, draws, weights=None):
    """Mean squared distance of the items' one-hot rows to their cluster's mean, draws weighted."""
    total = 0.0
    for draw, weight in zip(np.asarray(draws), shares(draws, weights), strict=True):
        rows = np.equal.outer(draw, np.unique(draw)).astype(float)
        for cluster in np.unique(estimate):
            members = rows[np.equal(estimate, cluster)]
            total += weight * ((members - members.mean(axis=0)) ** 2).sum()
    return total / len(estimate)


def summed_impurity(partition, draws, weighted=False, weights=None):
    """Sum over clusters of the mean share of members outside of the draw's cluster that has most of them."""
    total = 0.0
    for cluster in np.unique(partition):
        members = np.equal(partition, cluster)
        pure = [max(Counter(np.asarray(draw)[members].tolist()).values()) / members.sum() for draw in draws]
        total += (1 - shares(draws, weights) @ pure) * (members.mean() if weighted else 1)
    return total


def binder_of_pairs(estimate, similarities):
    """Binder's loss 2 / n^2 for each pair, with a pair's similarity as its probability of being together."""
    pairs = combinations(range(len(estimate)), 2)
    costs = (1 - similarities[i][j] if estimate[i] == estimate[j] else similarities[i][j] for i, j in pairs)
    return 2 * sum(costs) / len(estimate) ** 2


# Losses between an estimate and a draw


def pair_counts(estimate, draw):
    """Pairs together in both, in the estimate only, in the draw only, in neither."""
    both = estimate_only = draw_only = neither = 0
    for i, j in combinations(range(len(estimate)), 2):
        ours, theirs = estimate[i] == estimate[j], draw[i] == draw[j]
        both += ours and theirs
        estimate_only += ours and not theirs
        draw_only += theirs and not ours
        neither += not ours and not theirs
    return int(both), int(estimate_only), int(draw_only), int(neither)


def same(estimate, draw):
    return canonical(estimate).tolist() == canonical(draw).tolist()


def ratio(numerator, denominator, estimate, draw):
    """The ratio; 0/0 is the distance 0 between equal partitions and 1 between others."""
    if abs(denominator) < 1e-12:
        return 0.0 if same(estimate, draw) else 1.0
    return numerator / denominator


def binder(estimate, draw, a=1.0):
    _, estimate_only, draw_only, _ = pair_counts(estimate, draw)
    return 2 * (a * draw_only + (2 - a) * estimate_only) / len(estimate) ** 2


def ballet(estimate, run, noise=1.0, a=1.0):
    """Binder's loss of the pairs in clusters in both, and a cost of each item that one calls noise, by labels of -1."""
    n_items, cost = len(estimate), 0.0
    for i in range(n_items):
        cost += noise * (n_items - 1) * ((estimate[i] == -1) != (run[i] == -1))
        for j in range(i):
            if -1 not in (estimate[i], estimate[j], run[i], run[j]):
                cost += a * (estimate[i] != estimate[j] and run[i] == run[j])
                cost += (2 - a) * (estimate[i] == estimate[j] and run[i] != run[j])
    return 2 / n_items**2 * cost


def rand_index(estimate, draw):
    both, estimate_only, draw_only, neither = pair_counts(estimate, draw)
    return (both + neither) / (both + estimate_only + draw_only + neither)


def one_minus_ari(estimate, draw):
    both, estimate_only, draw_only, neither = pair_counts(estimate, draw)
    index = 2 * (both * neither - estimate_only * draw_only)
    greatest = (both + estimate_only) * (estimate_only + neither) + (both + draw_only) * (draw_only + neither)
    return ratio(greatest - index, greatest, estimate, draw)


def jaccard(estimate, draw):
    both, estimate_only, draw_only, _ = pair_counts(estimate, draw)
    return ratio(estimate_only + draw_only, both + estimate_only + draw_only, estimate, draw)


def entropy(*label_vectors):
    """Entropy in bits of the joint distribution of a random item's labels."""
    cells = Counter(zip(*(np.asarray(labels).tolist() for labels in label_vectors), strict=True))
    n_items = sum(cells.values())
    return -sum(count / n_items * log2(count / n_items) for count in cells.values())


def mutual_information(estimate, draw):
    return entropy(estimate) + entropy(draw) - entropy(estimate, draw)


def vi(estimate, draw, a=1.0):
    joint = entropy(estimate, draw)
    return a * (joint - entropy(draw)) + (2 - a) * (joint - entropy(estimate))


def information_distance(estimate, draw):
    return max(entropy(estimate), entropy(draw)) - mutual_information(estimate, draw)


def nvi(estimate, draw):
    return ratio(vi(estimate, draw), entropy(estimate, draw), estimate, draw)


def nid(estimate, draw):
    return ratio(information_distance(estimate, draw), max(entropy(estimate), entropy(draw)), estimate, draw)


MEANS = {
    "geometric": lambda x, y: sqrt(x * y),
    "arithmetic": lambda x, y: (x + y) / 2,
    "min": min,
    "max": max,
}


def nmi(estimate, draw, average_method="geometric"):
    mean = MEANS[average_method](entropy(estimate), entropy(draw))
    return ratio(mean - mutual_information(estimate, draw), mean, estimate, draw)


LOSSES = {
    "vi": vi,
    "binder": binder,
    "one_minus_ari": one_minus_ari,
    "jaccard": jaccard,
    "nvi": nvi,
    "information_distance": information_distance,
    "nid": nid,
    "nmi": nmi,
}


def misclassification(one, other):
    """Least share of items labelled differently over all ways to rename the clusters."""
    one, other = canonical(one), canonical(other)
    names = range(max(one.max(), other.max()) + 1)
    return min(np.mean([renamed[k] for k in one] != other) for renamed in permutations(names))


def expected(partition, draws, loss, weights=None):
    """Posterior expectation of loss(partition, draw)."""
    return sum(share * loss(partition, draw) for share, draw in zip(shares(draws, weights), draws, strict=True))


# Consensus


UTILITY_NORMS = {
    "category": lambda shares: np.sum(shares**2),
    "entropy": lambda shares: sum(share * np.log(share) for share in shares if share > 0),
    "cosine": lambda shares: np.sqrt(np.sum(shares**2)),
    "lp": lambda shares: np.sum(shares**5) ** (1 / 5),
}


def on_common(loss):
    """The loss of the items that a draw has; labels of those that it lacks are NaN or -1. 0 without any."""

    def of_some(estimate, draw):
        there = np.asarray(draw) >= 0  # not NaN
        return loss(np.asarray(estimate)[there], np.asarray(draw)[there]) if there.any() else 0.0

    return of_some


def shares_of_meetings(runs, labels):
    """Share (n, K) of the meetings of an item with another member of a cluster, in a run, in which they are together.

    0 if they never met.
    """
    n, n_clusters = len(labels), max(labels) + 1
    found = np.zeros((n, n_clusters))
    for i in range(n):
        for k in range(n_clusters):
            others = [j for j in range(n) if labels[j] == k and j != i]
            met = [run[i] == run[j] for run in runs for j in others if run[i] >= 0 and run[j] >= 0]
            found[i, k] = sum(met) / len(met) if met else 0.0
    return found


def utility(partition, draws, norm, weights=None):
    """Mean over draws of what the norm of the draw's label shares gains when they are taken in each cluster."""
    partition, total = np.asarray(partition), 0.0
    for share, draw in zip(shares(draws, weights), np.asarray(draws), strict=True):
        names = np.unique(draw)
        total -= share * norm(np.array([np.mean(draw == name) for name in names]))
        for k in np.unique(partition):
            inside = draw[partition == k]
            total += share * np.mean(partition == k) * norm(np.array([np.mean(inside == name) for name in names]))
    return total


def partitions(n_items):
    """Every partition of the items, each once and canonical."""
    if n_items == 1:
        yield [0]
        return
    for shorter in partitions(n_items - 1):
        for label in range(max(shorter) + 2):
            yield [*shorter, label]


def partitions_with_noise(n_items):
    """Every partition of every subset of the items, once, with -1 for the others."""
    for n_active in range(n_items + 1):
        for active in combinations(range(n_items), n_active):
            for own in partitions(n_active) if n_active else [[]]:
                labels = [-1] * n_items
                for i, label in zip(active, own, strict=True):
                    labels[i] = label
                yield labels


def least_expected(draws, loss, weights=None, n_clusters=None):
    """Least expected loss of any partition, or of any with so many clusters."""
    distinct, counts = np.unique([canonical(draw) for draw in draws], axis=0, return_inverse=True)
    total = np.bincount(counts.ravel(), weights=shares(draws, weights))
    allowed = (p for p in partitions(len(distinct[0])) if n_clusters in (None, max(p) + 1))
    return min(expected(p, distinct, loss, total) for p in allowed)


def neighbours(partition):
    """Every partition one item's move or one merge of two clusters away."""
    partition = canonical(partition)
    n_clusters = partition.max() + 1
    for item in range(len(partition)):
        for cluster in range(n_clusters + 1):
            moved = partition.copy()
            moved[item] = cluster
            yield canonical(moved)
    for kept, gone in combinations(range(n_clusters), 2):
        yield canonical(np.where(partition == gone, kept, partition))


def mean_similarity(similarities, labels, item, cluster):
    """Mean similarity of an item to the other members of a cluster; None if there are none."""
    others = [j for j in range(len(labels)) if j != item and labels[j] == cluster]
    return np.mean([similarities[item, j] for j in others]) if others else None


def refine(similarities, labels, order, passes):
    """Algorithm 3: every item joins the cluster of greatest mean similarity, `passes` times.

    An item stays unless another cluster is better. With passes=None until a labelling comes back, at most 50 times.
    """
    labels, seen = canonical(labels), set()
    for _ in range(50 if passes is None else passes):
        seen.add(labels.tobytes())
        old, new = labels, labels.copy()
        for item in range(len(labels)):
            now = old if order == "jacobi" else new
            means = [mean_similarity(similarities, now, item, k) for k in range(old.max() + 1)]
            means = np.array([-np.inf if mean is None else mean for mean in means])
            if means[now[item]] < means.max() - 1e-12:
                new[item] = np.flatnonzero(means >= means.max() - 1e-12)[0]
        labels = canonical(new)
        if passes is None and labels.tobytes() in seen:
            break
    return labels


# What else the posterior says


def credible_ball(draws, centre, loss, prob, weights=None):
    """Radius, coverage, and for each bound its distance and its distinct partitions as a set."""
    share = shares(draws, weights)
    distances = np.round([loss(centre, draw) for draw in draws], 10)
    radius = min(d for d in distances if share[distances <= d].sum() >= prob - 1e-9)
    inside = [t for t in range(len(draws)) if distances[t] <= radius and share[t] > 0]
    n_clusters = [len(set(draw.tolist())) for draw in np.asarray(draws)]
    fewest, most = min(n_clusters[t] for t in inside), max(n_clusters[t] for t in inside)
    among = {
        "horizontal": inside,
        "upper_vertical": [t for t in inside if n_clusters[t] == fewest],
        "lower_vertical": [t for t in inside if n_clusters[t] == most],
    }
    bounds = {}
    for name, rows in among.items():
        farthest = max(distances[t] for t in rows)
        ties = {tuple(canonical(draws[t]).tolist()) for t in rows if distances[t] == farthest}
        bounds[name] = (farthest, ties)
    return radius, share[inside].sum(), bounds


def item_uncertainty(similarities, labels):
    """For every item the mean similarity to its own cluster and to each other one (NaN where empty)."""
    labels = canonical(labels)
    own, elsewhere = [], []
    for item in range(len(labels)):
        means = [mean_similarity(similarities, labels, item, k) for k in range(labels.max() + 1)]
        own.append(np.nan if means[labels[item]] is None else means[labels[item]])
        elsewhere.append([np.nan if k == labels[item] else mean for k, mean in enumerate(means)])
    return np.array(own), np.array(elsewhere, float)


def pairwise_similarities(draws, weights=None):
    """Similarities counted over the draws that hold both items; a label below 0 is missing."""
    share = shares(draws, weights)
    n_items = len(draws[0])
    found = np.eye(n_items)
    for i in range(n_items):
        for j in range(n_items):
            both = [t for t, draw in enumerate(draws) if draw[i] >= 0 and draw[j] >= 0]
            if i != j:
                together = [t for t in both if draws[t][i] == draws[t][j]]
                found[i, j] = share[together].sum() / share[both].sum()
    return found


def probability_errors(probabilities, errors, size=None, n_draws=None):
    """Standard errors of probabilities from those of means; `n_draws` is the size if no event varies."""
    p, s = np.ravel(probabilities), np.ravel(errors)
    if size is None:
        moving = s > 1e-12
        size = (p * (1 - p))[moving].sum() / (s[moving] ** 2).sum() if moving.any() else n_draws
    corrected = []
    for one, error, other in zip(p, s, np.broadcast_to(size, np.shape(errors)).ravel(), strict=True):
        m = other
        if error > 1e-12:
            m = one * (1 - one) / error**2
            visits = m * one * (1 - one)
            m = (visits + 4) / (visits / m + 4 / other) if other < m else m
        shrunk = (m * one + 2) / (m + 4)
        corrected.append(np.sqrt(shrunk * (1 - shrunk) / m))
    return np.reshape(corrected, np.shape(errors))


def information_of_table(shares, rows, columns):
    """Mutual information (nats) of the clusters of rows and of columns, given the shares of a table."""
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows[:, np.newaxis], columns), shares)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return sum(p * np.log(p / e) for p, e in zip(table.ravel(), expected.ravel(), strict=True) if p > 0)
