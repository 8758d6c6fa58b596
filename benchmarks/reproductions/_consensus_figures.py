"""Figures 1 to 4 of the paper, with our methods beside its."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks.reproductions._printed import FIGURES, SETTINGS
from posterior_consensus.simulate.theory import bayes_error, chernoff_information

# Rows of the tables that the figures show; a method keeps its colour with and without refinement.
COLOURS = {
    "Input": "#999999",
    "Basic": "#0072b2",
    "Spectral, Gaussian kernel": "#009e73",
    "KCC": "#e69f00",
    "CC-Pivot": "#cc79a7",
    "BOEM": "#56b4e9",
    "EM": "#a6761d",
    "RPM-EM, K given": "#d55e00",
    "Oracle": "black",
}
ONE_STAGE = ("EM", "RPM-EM, K given", "Oracle")  # drawn solid though nothing refines them


def save_figures(results: pd.DataFrame, folder: Path) -> None:
    """Write figure_1.png to figure_4.png."""
    save_figure_1(folder / "figure_1.png")
    for number, sets in FIGURES.items():
        save_curves(results, sets, folder / f"figure_{number}.png")


def save_figure_1(file: Path) -> None:
    """Chernoff information by noise, and how fast the exponent of the exact error comes near it."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    noise = np.linspace(0.001, 0.999, 400)
    for n_clusters in (2, 5, 10):
        left.plot(noise, chernoff_information(n_clusters, noise), label=f"K = {n_clusters}")
    left.set(xlabel="noise p", ylabel="Chernoff information I (nats)", ylim=(0, 3))
    for n_draws in (2, 10, 30):
        errors = np.array([bayes_error(2, p, n_draws=n_draws) for p in noise])
        right.plot(noise, -np.log(errors) / n_draws, label=f"N = {n_draws}")
    right.plot(noise, chernoff_information(2, noise), "k--", label="N → ∞ (Chernoff)")
    right.set(xlabel="noise p", ylabel="-log(P_N) / N (nats), K = 2", ylim=(0, 3))
    for axes in (left, right):
        axes.legend(frameon=False)
    save(figure, file)


def save_curves(results: pd.DataFrame, sets: tuple[int, ...], file: Path) -> None:
    """Mean adjusted Rand index by noise, a panel for each setting."""
    rows = -(-len(sets) // 2)
    figure, panels = plt.subplots(
        rows, 2, figsize=(9, 3.4 * rows), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    means = results.groupby(["set", "method", "refined", "noise"])["ari"].mean()
    curves = [(method, refined) for method in COLOURS for refined in (False, True)]
    for s, axes in zip(sets, panels.flat, strict=True):
        for method, refined in curves:
            if (s, method, refined) in means.index.droplevel("noise"):
                mean = means.loc[s, method, refined]
                axes.plot(mean.index, mean, label=method + ", refined" * refined, **style(method, refined))
        axes.set_title(f"Set {s}: {SETTINGS[s].title}", fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("noise p")
    for axes in panels[:, 0]:
        axes.set_ylabel("adjusted Rand index")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    save(figure, file)


def style(method: str, refined: bool) -> dict:
    """Solid after refinement and where nothing is to be refined, dotted before it, as in the paper."""
    line = "-" if refined or method in ONE_STAGE else ":"
    is_ours = method.startswith("RPM-EM")
    return {
        "color": COLOURS[method],
        "linestyle": "--" if method == "Oracle" else line,
        "linewidth": 2.2 if is_ours else 1.2,
        "zorder": 3 if is_ours else 2,
    }


def save(figure: plt.Figure, file: Path) -> None:
    """Write the figure."""
    figure.savefig(file, dpi=72)
    plt.close(figure)
