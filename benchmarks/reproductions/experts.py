"""Several views from uncertain experts: the synthetic study of the paper, beside its rivals.

Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), https://proceedings.mlr.press/v70/chang17a.html: 600 items with six
features, two views of three clusters each, experts who err in a known share of their statements. The data are made anew
from the paper's description.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score as nmi

import posterior_consensus as pc
from benchmarks._runner import ROOT, used
from benchmarks.reproductions._expert_figures import draw
from posterior_consensus.experts.competing_methods import (
    itml_k_means,
    meta_clustering,
    mpck_means,
    normalized_cut,
    semi_crowd,
)

N_ITEMS, REPEATS = 600, 10
ACCURACIES = (0.95, 0.9, 0.85, 0.8, 0.75)
NUMBERS = (100, 200, 400, 1000, 2000)
NUMBERS_OF_TASK_2, REPEATS_OF_TASK_2 = (200, 600, 1200, 2000), 5
QUIET = {"progressbar": False}
IMAGES = ROOT / "reproduction"
OPTIONS = {"--figures": {"action": "store_true", "help": "draw reproduction/experts_*.png as well"}}


def three_clusters(rng, n_items=N_ITEMS):
    """Features, and the truths of two views: three normal groups in features 1 and 2, three others in 3 and 4."""
    angles = np.pi / 2 + 2 * np.pi * np.arange(3) / 3
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    one, other = np.arange(n_items) % 3, rng.permutation(np.arange(n_items) % 3)
    features = rng.normal(size=(n_items, 6))
    features[:, :2] += 2.35 * corners[one]
    features[:, 2:4] += 2.55 * corners[other]
    return features, one, other


def statements(truths, accuracies, number, rng):
    """As many statements of each expert, half about pairs together; of either half exactly the given share is right."""
    i, j = np.triu_indices(truths[0].size, 1)
    parts = []
    for expert, (truth, accuracy) in enumerate(zip(truths, accuracies, strict=True), 1):
        together = truth[i] == truth[j]
        for kind, wrong, where in (("must", "cannot", together), ("cannot", "must", ~together)):
            pairs = rng.choice(np.flatnonzero(where), number // 2, replace=False)
            said = np.full(pairs.size, kind, object)
            said[: round((1 - accuracy) * pairs.size)] = wrong
            parts.append(pd.DataFrame({"expert": expert, "i": i[pairs], "j": j[pairs], "kind": said}))
    return pc.experts.as_constraints(pd.concat(parts, ignore_index=True), truths[0].size)


def tables(smallest, figures):
    n_items, repeats, numbers = (60, 1, (100,)) if smallest else (N_ITEMS, REPEATS, NUMBERS)
    data = three_clusters(np.random.default_rng(1), n_items)
    yield "", _ceiling(*data)
    views, irrelevant, curves = {}, [], {}  # for the figures
    yield "", (_views(data, number, repeats, views) for number in numbers)
    of_clusters = (3,) if smallest else (2, 3, 4, 5, 6, 7, 8)
    said = statements_in_two_views(data, numbers[-1], np.random.default_rng(7))
    yield "", (_with_n_clusters(data, said, n_clusters) for n_clusters in of_clusters)
    yield "", _irrelevant_experts(data, numbers[-1], repeats, irrelevant)
    yield "", (_intervals(data, number, repeats) for number in numbers)
    task_2 = (numbers, 1) if smallest else (NUMBERS_OF_TASK_2, REPEATS_OF_TASK_2)
    for kind, accuracies in list({"unequal": ACCURACIES, "equal": (0.95,) * 5}.items())[: 1 if smallest else None]:
        curves[kind] = _one_view(data, accuracies, *task_2)
        title = f"NMI with the truth, mean (standard deviation); accuracies {kind}"
        yield title, (_curve(name, curve) for name, curve in curves[kind].items())
    if figures:
        draw(IMAGES, views, irrelevant[-1], curves)


def statements_in_two_views(data, number, rng):
    """Of five experts in each of the two views."""
    _, one, other = data
    return statements([one] * 5 + [other] * 5, ACCURACIES + ACCURACIES[::-1], number, rng)


def _ceiling(features, one, other):
    """NMI of a logistic regression that is given the truth and the two features that matter."""
    for name, truth, columns in (("first", one, slice(0, 2)), ("second", other, slice(2, 4))):
        fitted = LogisticRegression().fit(features[:, columns], truth).predict(features[:, columns])
        yield {"view": name, "NMI of a regression on the truth": f"{nmi(truth, fitted):.3f}"}


def _views(data, number, repeats, kept):
    """Task 1: ten experts in two views."""
    features, one, other = data
    belongs = np.repeat([0, 1], 5)
    runs = []
    for repeat in range(repeats):
        said = statements_in_two_views(data, number, np.random.default_rng([number, repeat]))
        call = used(pc.experts.expert_views, said, features, n_clusters=3, random_seed=repeat, **QUIET)
        views, labels = call.result.expert_view.values, call.result.labels
        meta = meta_clustering(said, random_seed=repeat).values
        clusters = [nmi(one, labels[views[0]]), nmi(other, labels[views[-1]])]
        runs.append([nmi(belongs, views), nmi(belongs, meta), *clusters, call.cpu])
    kept[number] = np.array(runs)
    least, mean, median = (f(runs, axis=0) for f in (np.min, np.mean, np.median))
    return {
        "constraints per expert": number,
        "NMI of experts' views, least": f"{least[0]:.2f}",
        "meta_clustering, mean": f"{mean[1]:.2f}",
        "NMI of the first view, mean (least)": f"{mean[2]:.3f} ({least[2]:.3f})",
        "of the second": f"{mean[3]:.3f} ({least[3]:.3f})",
        "CPU seconds / 2": f"{median[4] / 2:.1f}",
    }


def _with_n_clusters(data, said, n_clusters):
    """What another number of clusters changes."""
    features, one, other = data
    found = pc.experts.expert_views(said, features, n_clusters=n_clusters, random_seed=1, **QUIET)
    views = found.expert_view.values
    return {
        "n_clusters": n_clusters,
        "NMI of experts' views": f"{nmi(np.repeat([0, 1], 5), views):.2f}",
        "first": f"{nmi(one, found.labels[views[0]]):.2f}",
        "second": f"{nmi(other, found.labels[views[-1]]):.2f}",
        "sizes": [np.sort(np.bincount(labels))[::-1].tolist() for labels in found.labels.values],
    }


def _irrelevant_experts(data, number, repeats, kept):
    """Five more experts who speak of a clustering that no feature shows."""
    features, one, other = data
    weights, right = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng([9, repeat])
        truths = [one] * 5 + [other] * 5 + [rng.integers(3, size=one.size)] * 5
        said = statements(truths, ACCURACIES + ACCURACIES[::-1] + ACCURACIES, number, rng)
        found = pc.experts.expert_views(said, features, n_clusters=3, n_starts=10, random_seed=1, **QUIET)
        weights.append(np.abs(found.expert_weight.values))
        right.append(found.informative.values == (np.arange(15) < 10))
        kept.append(found)
    for name, own in (("first ten", slice(0, 10)), ("irrelevant", slice(10, 15))):
        sizes = np.array(weights)[:, own]
        yield {
            "experts": name,
            "least |weight|": f"{sizes.min():.2f}",
            "mean": f"{sizes.mean():.2f}",
            "largest": f"{sizes.max():.2f}",
            "told apart from chance, or not, rightly": f"{np.mean(np.array(right)[:, own]):.0%}",
        }


def _intervals(data, number, repeats):
    """How often 95% intervals of sensitivity and specificity hold the truth, and how far the means are off."""
    truth = np.array(ACCURACIES + ACCURACIES[::-1])
    inside, off = [], []
    for repeat in range(repeats):
        said = statements_in_two_views(data, number, np.random.default_rng([number, repeat]))
        found = pc.experts.expert_views(said, data[0], n_clusters=3, n_starts=5, random_seed=repeat, **QUIET)
        for measure, values in found.intervals(0.95).items():
            inside.append((values.values[:, 0] <= truth) & (truth <= values.values[:, 1]))
            off.append(getattr(found, measure).values - truth)
    row = {"constraints per expert": number, "95% intervals that hold the truth": f"{np.mean(inside):.0%}"}
    return row | {"mean less truth": f"{np.mean(off):+.3f}"}


def _one_view(data, accuracies, numbers, repeats):
    """Task 2: five experts in one view, by the NMI of the clusters with it."""
    features, one, _ = data

    def ours(*given, **options):
        found = pc.experts.expert_views(*given, **options, **QUIET)
        return found.labels[int(found.expert_view[0])]

    methods = {
        "expert_views": lambda said, **asked: ours(said, features, **asked),
        "without features": lambda said, **asked: ours(said, n_starts=10, **asked),
        "mpck_means": lambda said, **asked: mpck_means(said, features, **asked),
        "semi_crowd": lambda said, **asked: semi_crowd(said, features, **asked),
        "itml_k_means": lambda said, **asked: itml_k_means(said, features, **asked),
        "normalized_cut": normalized_cut,
    }
    curves = {name: [] for name in methods}
    for number in numbers:
        rngs = [np.random.default_rng([number, repeat, 2]) for repeat in range(repeats)]
        said = [statements([one] * 5, accuracies, number, rng) for rng in rngs]
        for name, method in methods.items():
            scores = [nmi(one, method(each, n_clusters=3, random_seed=k)) for k, each in enumerate(said)]
            curves[name].append((number, np.mean(scores), np.std(scores)))
    return curves


def _curve(name, curve):
    return {"constraints per expert": name} | {str(number): f"{mean:.2f} ({sd:.2f})" for number, mean, sd in curve}
