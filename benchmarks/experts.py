"""Several views from uncertain experts: the synthetic study of the paper, beside its rivals.

Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), https://proceedings.mlr.press/v70/chang17a.html: 600 items with six
features, two views of three clusters each, experts who err in a known share of their statements. The data are made anew
from the paper's description. With --figures two figures are drawn into docs/images/.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score as nmi

import posterior_consensus as pc
from benchmarks._timing import print_table

N_ITEMS, REPEATS = 600, 10
ACCURACIES = (0.95, 0.9, 0.85, 0.8, 0.75)
NUMBERS = (100, 200, 400, 1000, 2000)
NUMBERS_OF_TASK_2, REPEATS_OF_TASK_2 = (200, 600, 1200, 2000), 5
QUIET = {"progressbar": False}
IMAGES = Path(__file__).parents[1] / "docs" / "images"


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


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--figures", action="store_true", help="draw docs/images/experts_*.png as well")
    given = parser.parse_args()
    n_items, repeats = (60, 1) if given.smallest else (N_ITEMS, REPEATS)
    numbers = (100,) if given.smallest else NUMBERS
    data = three_clusters(np.random.default_rng(1), n_items)
    _ceiling(*data)
    views = _views(data, numbers, repeats)
    _numbers_of_clusters(data, (3,) if given.smallest else (2, 3, 4, 5, 6, 7, 8), numbers[-1])
    irrelevant = _irrelevant_experts(data, numbers[-1], repeats)
    _intervals(data, numbers, repeats)
    task_2 = (numbers, 1) if given.smallest else (NUMBERS_OF_TASK_2, REPEATS_OF_TASK_2)
    kinds = {"unequal": ACCURACIES} if given.smallest else {"unequal": ACCURACIES, "equal": (0.95,) * 5}
    curves = {kind: _one_view(data, accuracies, *task_2, kind) for kind, accuracies in kinds.items()}
    if given.figures:
        from benchmarks._expert_figures import draw

        draw(IMAGES, views, irrelevant, curves)


def _ceiling(features, one, other):
    """NMI of a logistic regression that is given the truth and the two features that matter."""
    rows = []
    for name, truth, columns in (("first", one, slice(0, 2)), ("second", other, slice(2, 4))):
        fitted = LogisticRegression().fit(features[:, columns], truth).predict(features[:, columns])
        rows.append([name, f"{nmi(truth, fitted):.3f}"])
    print_table(["view", "NMI of a regression on the truth"], rows)
    print()


def _views(data, numbers, repeats):
    """Task 1: ten experts in two views."""
    features, one, other = data
    belongs = np.repeat([0, 1], 5)
    rows, found_at = [], {}
    for number in numbers:
        runs = []
        for repeat in range(repeats):
            rng = np.random.default_rng([number, repeat])
            said = statements([one] * 5 + [other] * 5, ACCURACIES + ACCURACIES[::-1], number, rng)
            began, cpu = time.perf_counter(), time.process_time()
            found = pc.experts.expert_views(said, features, n_clusters=3, random_seed=repeat, **QUIET)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            views = found.expert_view.values
            meta = pc.experts.meta_clustering(said, random_seed=repeat).values
            clusters = [nmi(one, found.labels[views[0]]), nmi(other, found.labels[views[-1]])]
            runs.append([nmi(belongs, views), nmi(belongs, meta), *clusters, seconds, cpu])
        runs = np.array(runs)
        found_at[number] = runs
        least, mean = runs.min(axis=0), runs.mean(axis=0)
        row = [number, f"{least[0]:.2f}", f"{mean[1]:.2f}"]
        row += [f"{mean[k]:.3f} ({least[k]:.3f})" for k in (2, 3)]
        rows.append([*row, f"{np.median(runs[:, 4]):.1f}", f"{np.median(runs[:, 5]) / 2:.1f}"])
    header = ["statements an expert", "NMI of experts' views, least", "meta_clustering, mean"]
    header += ["NMI of the first view, mean (least)", "of the second", "seconds", "processor's seconds / 2"]
    print_table(header, rows)
    print()
    return found_at


def _numbers_of_clusters(data, numbers, number):
    """What another number of clusters changes."""
    features, one, other = data
    said = statements([one] * 5 + [other] * 5, ACCURACIES + ACCURACIES[::-1], number, np.random.default_rng(7))
    rows = []
    for n_clusters in numbers:
        found = pc.experts.expert_views(said, features, n_clusters=n_clusters, random_seed=1, **QUIET)
        views = found.expert_view.values
        sizes = [np.sort(np.bincount(labels))[::-1].tolist() for labels in found.labels.values]
        scores = [nmi(truth, found.labels[views[k]]) for truth, k in ((one, 0), (other, -1))]
        cells = [nmi(np.repeat([0, 1], 5), views), *scores]
        rows.append(
            [n_clusters, *(f"{x:.2f}" for x in cells), ", ".join(map(str, found.n_clusters.values)), str(sizes)]
        )
    print_table(["n_clusters", "NMI of experts' views", "first", "second", "clusters used", "sizes"], rows)
    print()


def _irrelevant_experts(data, number, repeats):
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
    weights, right = np.array(weights), np.array(right)
    rows = []
    for name, own in (("first ten", slice(0, 10)), ("irrelevant", slice(10, 15))):
        least, mean, largest = (f"{f(weights[:, own]):.2f}" for f in (np.min, np.mean, np.max))
        rows.append([name, least, mean, largest, f"{right[:, own].mean():.0%}"])
    print_table(["experts", "least |weight|", "mean", "largest", "told apart from chance, or not, rightly"], rows)
    print()
    return found


def _intervals(data, numbers, repeats):
    """How often 95% intervals of sensitivity and specificity hold the truth, and how far the means are off."""
    features, one, other = data
    truth = np.array(ACCURACIES + ACCURACIES[::-1])
    rows = []
    for number in numbers:
        inside, off = [], []
        for repeat in range(repeats):
            rng = np.random.default_rng([number, repeat])
            said = statements([one] * 5 + [other] * 5, ACCURACIES + ACCURACIES[::-1], number, rng)
            found = pc.experts.expert_views(said, features, n_clusters=3, n_starts=5, random_seed=repeat, **QUIET)
            for measure, values in found.intervals(0.95).items():
                inside.append((values.values[:, 0] <= truth) & (truth <= values.values[:, 1]))
                off.append(getattr(found, measure).values - truth)
        rows.append([number, f"{np.mean(inside):.0%}", f"{np.mean(off):+.3f}"])
    print_table(["statements an expert", "95% intervals that hold the truth", "mean less truth"], rows)
    print()


def _one_view(data, accuracies, numbers, repeats, kind):
    """Task 2: five experts in one view, by the NMI of the clusters with it."""
    features, one, _ = data
    curves = {
        name: []
        for name in ("expert_views", "without features", "mpck_means", "semi_crowd", "itml_k_means", "normalised_cut")
    }
    for number in numbers:
        scores = {name: [] for name in curves}
        for repeat in range(repeats):
            said = statements([one] * 5, accuracies, number, np.random.default_rng([number, repeat, 2]))
            asked = {"n_clusters": 3, "random_seed": repeat}
            found = pc.experts.expert_views(said, features, **asked, **QUIET)
            scores["expert_views"].append(nmi(one, found.labels[int(found.expert_view[0])]))
            found = pc.experts.expert_views(said, **asked, n_starts=10, **QUIET)
            scores["without features"].append(nmi(one, found.labels[int(found.expert_view[0])]))
            for name in ("mpck_means", "semi_crowd", "itml_k_means"):
                scores[name].append(nmi(one, getattr(pc.experts, name)(said, features, **asked)))
            scores["normalised_cut"].append(nmi(one, pc.experts.normalised_cut(said, **asked)))
        for name, values in scores.items():
            curves[name].append((number, np.mean(values), np.std(values)))
    rows = [[name, *(f"{mean:.2f} ({sd:.2f})" for _, mean, sd in curve)] for name, curve in curves.items()]
    print(f"NMI with the truth, mean (standard deviation); accuracies {kind}")
    print_table(["statements an expert", *map(str, numbers)], rows)
    print()
    return curves


if __name__ == "__main__":
    main()
