"""The figures of the study of experts, beside those of the paper."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import beta

COLOURS = ("#0072b2", "#009e73", "#d55e00")  # first view, second view, irrelevant


def draw(folder: Path, views, irrelevant, curves) -> None:
    """Figures 3 and 6 of the paper in one, and Figure 4."""
    folder.mkdir(exist_ok=True)
    _experts(views, irrelevant).savefig(folder / "experts_paper_1.png", dpi=110)
    _one_view(curves).savefig(folder / "experts_paper_2.png", dpi=110)
    plt.close("all")


def _experts(views, irrelevant):
    """Recovery of the experts' views by number of statements; posteriors of fifteen experts, five irrelevant."""
    figure, (left, *right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    numbers = list(views)
    for column, name, colour in ((0, "expert_views", COLOURS[0]), (1, "meta_clustering", COLOURS[2])):
        values = np.array([views[number][:, column] for number in numbers])
        left.errorbar(numbers, values.mean(axis=1), values.std(axis=1), color=colour, marker="o", capsize=3, label=name)
    left.set(xscale="log", xlabel="statements an expert", ylabel="NMI of the experts' views", ylim=(-0.05, 1.05))
    left.legend(frameon=False)
    grid = np.linspace(0.4, 1, 800)
    for ax, (k, measure) in zip(right, enumerate(("sensitivity", "specificity")), strict=True):
        for expert, (a, b) in enumerate(irrelevant.reliability.values[:, k]):
            ax.plot(grid, beta.pdf(grid, a, b), color=COLOURS[expert // 5], lw=1)
        ax.set(xlabel=measure, yticks=[])
    for name, colour in zip(("first view", "second view", "irrelevant"), COLOURS, strict=True):
        right[0].plot([], [], color=colour, label=name)
    right[0].legend(frameon=False)
    return figure


def _one_view(curves):
    """NMI of the clusters of one view by number of statements, unequal and equal accuracies."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for ax, (kind, of_methods) in zip(axes, curves.items(), strict=True):
        for name, curve in of_methods.items():
            numbers, means, sds = np.array(curve).T
            ax.errorbar(numbers, means, sds, marker="o", ms=3, capsize=2, lw=1, label=name)
        ax.set(title=f"{kind} accuracies", xlabel="statements an expert", ylim=(0, 1.03))
    axes[0].set_ylabel("NMI with the truth")
    axes[1].legend(frameon=False, fontsize=7, loc="lower right")
    return figure
