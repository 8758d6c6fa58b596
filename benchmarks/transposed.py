"""Labels with rows and columns exchanged: how many made arrays are warned of, as they should be and exchanged.

Arrays of 20 to 5,000 items and 10 to 5,000 draws, logarithmically uniform, of 2 to 7 or 20 to 149 clusters. Clusters
are equally large, unequal, one of nine in ten items, or next to many single items; items are sorted in three of ten.
Some kinds are counted apart, since rows and columns may look alike in them: two clusters, whose labels over the draws
agree although the items differ; posteriors of two or three answers, mixed or one after the other; chains with their own
labels in one array; and labels that are ever new.

Other families are not those whose counts chose the rule: posteriors of which three to seven in ten draws are one
cluster, or nearly so; of which half of the items are one cluster and the others anywhere; random walks of single items
with now and then a merge or a split; and four chains. The like of the first and of random walks were looked at while
the rule was chosen.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from posterior_consensus.ensemble.partitions import canonical_rows
from posterior_consensus.sources.transposed import rows_are_items

NUMBERINGS = {
    "ordinary": ("fixed", "by first appearance", "by size", "switching now and then", "random", "with gaps", "slots"),
    "apart": ("a chain's own", "ever new"),
}
SIZES = ("equal", "unequal", "one of 90%", "single items")
SPREADS = {
    "ordinary": ("concentrated", "some items", "most items", "anywhere", "merging", "other numbers", "a warm-up"),
    "apart": ("answers mixed", "answers in turn"),
}
OTHERS = "half is one cluster", "half is nearly one cluster", "half of the items", "random walk", "four chains"
N_CASES = 1_000  # of ordinary arrays, and half as many of those apart

_UNCERTAIN = {  # share of items, and largest probability of another label
    "concentrated": (0.2, 0.01),
    "some items": (0.2, 0.3),
    "most items": (0.8, 0.6),
    "anywhere": (0.4, 0.5),
    "merging": (0.3, 0.05),
    "other numbers": (0.3, 0.1),
    "a warm-up": (0.3, 0.2),
    "answers mixed": (0.3, 0.3),
    "answers in turn": (0.3, 0.3),
}


class Case(NamedTuple):
    """Labels (n_draws, n_items), and what they are made of."""

    labels: np.ndarray
    n_clusters: int
    numbering: str
    sizes: str
    spread: str


class Judged(NamedTuple):
    """A case without its labels, and whether it is taken for items in rows, as it is and exchanged."""

    case: Case
    as_it_is: bool
    exchanged: bool


def tables(smallest):
    n = 50 if smallest else N_CASES
    ordinary, apart = list(judged(n, seed=1)), list(judged(n // 2, seed=2, is_ordinary=False))
    for title, kind in (
        ("Clusters", lambda case: "3 or 4" if case.n_clusters < 5 else "5 or more"),
        ("Numbers of clusters", lambda case: case.numbering),
        ("Uncertainty", lambda case: case.spread),
        ("Sizes", lambda case: case.sizes),
    ):
        yield title, _rows(ordinary, kind)
    yield "Counted apart", _rows(apart, _reason)
    others = [one for kind in OTHERS for one in judged(6 * n // 20, seed=3, kind=kind)]
    yield "Other families", _rows(others, lambda case: case.spread)


def _reason(case):
    if case.n_clusters == 2:
        return "two clusters"
    return case.numbering if case.numbering in NUMBERINGS["apart"] else case.spread


def _rows(found, kind):
    kinds = sorted({kind(one.case) for one in found})
    for name, of_kind in [*((one, [row for row in found if kind(row.case) == one]) for one in kinds), ("all", found)]:
        yield {
            "kind": name,
            "arrays": len(of_kind),
            "warned of": sum(one.as_it_is for one in of_kind),
            "warned of when exchanged": f"{np.mean([one.exchanged for one in of_kind]):.1%}",
        }


def judged(n_cases: int, seed: int, *, is_ordinary: bool = True, kind: str = "") -> Iterator[Judged]:
    """Made cases, of the ordinary kinds, of those apart or of another family."""
    rng = np.random.default_rng(seed)
    for _ in range(n_cases):
        case = other(rng, kind) if kind else made(rng, is_ordinary=is_ordinary)
        both = case.labels, case.labels.swapaxes(-1, -2)
        yield Judged(case._replace(labels=case.labels[:0]), *map(rows_are_items, both))


def other(rng: np.random.Generator, kind: str) -> Case:
    """One case of another family, of random size."""
    n_items, n_draws = (round(np.exp(rng.uniform(np.log(low), np.log(2_000)))) for low in (20, 10))
    n_clusters = min(int(rng.integers(2, 8) if rng.random() < 0.6 else rng.integers(8, 60)), n_items // 2)
    sizes, numbering = str(rng.choice(SIZES)), str(rng.choice(NUMBERINGS["ordinary"]))
    truth = _truth(rng, n_items, n_clusters, sizes)
    if kind == "half of the items":
        draws = np.where(np.arange(n_items) < n_items // 2, 0, rng.integers(n_clusters, size=(n_draws, n_items)))
    elif kind == "random walk":
        draws = _walk(rng, truth, n_draws)
    else:
        n_chains = 4 if kind == "four chains" else 1
        draws = _around(rng, truth, n_chains * n_draws, str(rng.choice(SPREADS["ordinary"])))
        if n_chains == 1:
            strays = rng.uniform(0.01, 0.1) if "nearly" in kind else 0.0
            is_one = rng.random(n_draws)[:, np.newaxis] < rng.uniform(0.3, 0.7)
            is_stray = rng.random(draws.shape) < strays
            one = np.where(is_stray, rng.integers(draws.max() + 1, size=draws.shape), 0)
            draws = np.where(is_one, one, draws)
    labels = _numbered(rng, draws, numbering)
    shaped = labels.reshape(4, n_draws, n_items) if kind == "four chains" else labels
    return Case(shaped, n_clusters, numbering, sizes, kind)


def _walk(rng, start, n_draws):
    """Each draw is the one before with a few items elsewhere, and in one of twenty two clusters merged or one split."""
    n_items, n_labels = start.size, int(start.max()) + 1
    labels, n_moved = np.empty((n_draws, n_items), np.int64), int(rng.choice([1, 3, n_items // 10 + 1]))
    now = start.copy()
    for row in labels:
        moved = rng.choice(n_items, min(n_moved, n_items), replace=False)
        now[moved] = rng.integers(n_labels + 1, size=moved.size)
        if rng.random() < 0.05:
            one, two = rng.integers(n_labels, size=2)
            now[(now == one) & (rng.random(n_items) < rng.choice([0.5, 1.0]))] = two
        row[:] = now
    return labels


def made(rng: np.random.Generator, *, is_ordinary: bool) -> Case:
    """One case of random kind and size."""
    apart = "" if is_ordinary else rng.choice(["two", "numbering", "spread"])
    n_items, n_draws = (round(np.exp(rng.uniform(np.log(low), np.log(5_000)))) for low in (20, 10))
    n_clusters = int(rng.integers(3, 8) if rng.random() < 0.6 else rng.integers(20, 150))
    n_clusters = 2 if apart == "two" else min(n_clusters, n_items // 2)
    numbering, spread = (
        str(rng.choice(kinds["apart" if apart == name else "ordinary"]))
        for name, kinds in (("numbering", NUMBERINGS), ("spread", SPREADS))
    )
    sizes = str(rng.choice(SIZES))
    draws = _around(rng, _truth(rng, n_items, n_clusters, sizes), n_draws, spread)
    return Case(_numbered(rng, draws, numbering), n_clusters, numbering, sizes, spread)


def _truth(rng, n_items, n_clusters, sizes):
    shares = np.ones(n_clusters)
    if sizes == "unequal":
        shares = rng.dirichlet(shares) + 0.2 / n_clusters
    elif sizes == "one of 90%":
        shares[0] = 9 * (n_clusters - 1)
    truth = np.r_[np.arange(n_clusters), rng.choice(n_clusters, n_items - n_clusters, p=shares / shares.sum())]
    if sizes == "single items":
        alone = rng.random(n_items) < rng.uniform(0.1, 0.5)
        truth[alone] = n_clusters + np.arange(alone.sum())
    return np.sort(truth) if rng.random() < 0.3 else rng.permutation(truth)


def _around(rng, truth, n_draws, spread):
    """Draws of a partition: items take another label, their own second one or any; clusters merge and split."""
    n_items, n_labels = truth.size, int(truth.max()) + 1
    labels = np.tile(truth, (n_draws, 1))
    share, most = _UNCERTAIN[spread]
    chance = np.where(rng.random(n_items) < share, most * rng.random(n_items), 0.0)
    second = rng.integers(n_labels, size=n_items)
    if spread == "anywhere":
        second = rng.integers(n_labels + n_items // 10, size=labels.shape)
    elif spread == "a warm-up":
        chance = np.tile(chance, (n_draws, 1))
        n_early = n_draws // 10 + 1
        chance[:n_early] = np.linspace(0.3, 0.05, n_early)[:, np.newaxis]
    elif spread in SPREADS["apart"]:
        answers = [truth, *(_other_answer(rng, truth) for _ in range(rng.integers(1, 3)))]
        which = rng.choice(len(answers), n_draws, p=rng.dirichlet(np.ones(len(answers))))
        labels = np.array(answers)[np.sort(which) if spread == "answers in turn" else which]
    elif spread == "merging" and n_labels > 2:
        _merge(rng, labels, truth)
    elif spread == "other numbers" and n_labels > 2:
        for row in labels:
            names = np.arange(n_labels)
            n_merged = rng.integers(max(2, n_labels // 3))
            names[rng.choice(n_labels, n_merged, replace=False)] = rng.integers(n_labels, size=n_merged)
            row[:] = names[row]
    return np.where(rng.random(labels.shape) < chance, second, labels)


def _other_answer(rng, truth):
    """Some items go to the clusters of others, or some clusters are joined."""
    share, n_labels = rng.uniform(0.05, 1.0), int(truth.max()) + 1
    if rng.random() < 0.5:
        return np.where(rng.random(truth.size) < share, rng.permutation(truth), truth)
    names, are_joined = np.arange(n_labels), rng.random(n_labels) < share
    names[are_joined] = rng.integers(n_labels, size=are_joined.sum())
    return names[truth]


def _merge(rng, labels, truth):
    """Clusters join the larger one in a share of the draws; one is split in half in others."""
    n_draws, n_items = labels.shape
    sizes = np.bincount(truth)
    for _ in range(max(1, sizes.size // 6)):
        small, large = sorted(rng.choice(sizes.size, 2, replace=False), key=sizes.__getitem__)
        labels[(rng.random(n_draws) < rng.uniform(0.1, 0.6))[:, np.newaxis] & (labels == small)] = large
    rows, half = rng.random(n_draws) < rng.uniform(0.1, 0.6), rng.random(n_items) < 0.5
    labels[rows[:, np.newaxis] & half & (labels == rng.integers(sizes.size))] = sizes.size


def _numbered(rng, labels, numbering):
    """The same partitions, with other numbers of the clusters."""
    n_draws, n_labels = len(labels), int(labels.max()) + 1
    names = np.tile(np.arange(n_labels), (n_draws, 1))
    if numbering == "by first appearance":
        return canonical_rows(labels.astype(np.uint16), n_labels)[0]
    if numbering == "random":
        names = rng.permuted(names, axis=1)
    elif numbering == "with gaps":
        names[:] = rng.choice(3 * n_labels, n_labels, replace=False)
    elif numbering == "slots":
        n_slots = int(n_labels * rng.uniform(1.2, 4))
        names = rng.permuted(np.tile(np.arange(n_slots), (n_draws, 1)), axis=1)[:, :n_labels]
    elif numbering == "ever new":
        is_new = rng.random(names.shape) < rng.uniform(0.2, 5) / n_labels * rng.random(n_labels)
        new = (n_labels - 1 + np.cumsum(is_new)).reshape(names.shape)
        names = np.maximum.accumulate(np.where(is_new, new, names), axis=0)
    elif numbering == "a chain's own":
        names = rng.permuted(names[:4], axis=1)[np.arange(n_draws) * min(4, n_draws) // n_draws]
    elif numbering == "switching now and then":
        switches = rng.random(n_draws) < rng.uniform(0.5, 5) / n_draws
        for row, before, does_switch in zip(names[1:], names, switches, strict=False):
            row[:] = before
            if does_switch:
                pair = rng.choice(n_labels, 2, replace=False)
                row[pair] = row[pair[::-1]]
    elif numbering == "by size":
        at = np.arange(n_draws)[:, np.newaxis] * n_labels + labels
        counts = np.bincount(at.ravel(), minlength=n_draws * n_labels).reshape(n_draws, n_labels)
        names = np.argsort(np.argsort(-counts - 0.5 * rng.random(counts.shape), axis=1), axis=1)
    return np.take_along_axis(names, labels, axis=1)
