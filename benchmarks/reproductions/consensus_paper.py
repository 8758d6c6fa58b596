"""Tables 1 to 3 and Figures 1 to 4 of "Statistical guarantees for consensus clustering", ours beside the paper's.

Every replication simulates draws of the random perturbation model and gives them to every method; the adjusted Rand
index is that of its answer to the truth. Replications run on two processes, each with a seed of its own, so that the
numbers do not depend on the processes. The folder reproduction/ gets tables.md, tables.csv (a row for each cell) and
figure_1.png to figure_4.png.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import joblib
import numpy as np
import pandas as pd
from rich.progress import track

import posterior_consensus as pc
from benchmarks._runner import markdown
from benchmarks.reproductions._consensus_figures import save_figures
from benchmarks.reproductions._folder import folder_of_results
from benchmarks.reproductions._printed import NOISES, PRINTED, SETTINGS, K
from posterior_consensus.consensus.refinement import refine_partition
from posterior_consensus.consensus.selection import Task

N_PROCESSES = 2
CLOSE = 0.05  # mean adjusted Rand indices that differ by no more agree
NOISES_OF_FIGURES = (0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
REPLICATIONS_OF_FIGURES = 10
NEAR_ORACLE = {0.45: 0.03, 0.55: 0.03, 0.65: 0.05}
OPTIONS = {"--share": {"type": float, "default": 1.0, "help": "share of the paper's replications to run"}}


@dataclass(frozen=True)
class Row:
    """A row of our tables: a method, and the row of the paper it stands beside."""

    name: str
    printed: str | None
    method: str
    options: dict = field(default_factory=dict)
    n_clusters: int | None = K
    refined: bool = False


ROWS = (
    Row("Basic", "Basic", "basic", refined=True),
    Row("Spectral, Gaussian kernel", "SC", "spectral", {"affinity": "rbf"}, refined=True),
    Row("KCC", "KCC", "kcc", refined=True),
    Row("CC-Pivot", "CCPivot", "cc_pivot", {"threshold": 0.25, "n_starts": 1}, None, refined=True),
    Row("Spectral, Algorithm 2 as printed", "SC", "spectral", refined=True),
    Row("BOEM", "BOEM", "boem", refined=True),
    Row("EM", "EM", "lange_buhmann", {"n_starts": 1}),
    Row("Best-Of-K", "Best Of K", "best_draw", n_clusters=None),
    Row("Align and vote", None, "align_and_vote"),
    Row("RPM-EM, K given", None, "rpm_em"),
    Row("RPM-EM, K = 10 given", None, "rpm_em", n_clusters=10),
)
SIMPLE = (("Input", "Input"), ("A random draw", "Best Of K"), ("Oracle", None))  # neither options nor refinement


def tables(smallest, share):
    if smallest:
        tasks = [(s, 0.45, 0) for s in (1, 8)]
    else:
        shares = {s: max(2, round(share * setting.replications)) for s, setting in SETTINGS.items()}
        tasks = [(s, noise, r) for s in SETTINGS for noise in NOISES for r in range(shares[s])]
        tasks += [(s, p, r) for s in SETTINGS for p in NOISES_OF_FIGURES for r in range(REPLICATIONS_OF_FIGURES)]
    results = pd.DataFrame(in_parallel(tasks))
    cells = table_of_cells(results)
    near = [near_oracle(cells, row.name) for row in ROWS if row.method == "rpm_em"]
    with folder_of_results(smallest) as folder:
        cells.to_csv(folder / "tables.csv", index=False, float_format="%.4f")
        written = "\n\n".join([*pages(cells), *near])
        (folder / "tables.md").write_text(written + "\n", encoding="utf-8")
        save_figures(results, folder)
    yield f"cells within {CLOSE} of the paper's", agreement_by_row(cells).reset_index(names="row").to_dict("records")
    print("\n".join([*near, f"{len(tasks):,} replications, written to {folder}/"]))


def in_parallel(tasks: list[tuple[int, float, int]]) -> list[dict]:
    """All tasks' results, the most expensive first so that no process waits for the other at the end."""
    tasks = sorted(tasks, key=lambda task: -SETTINGS[task[0]].n_items * SETTINGS[task[0]].n_draws)
    run = joblib.Parallel(N_PROCESSES, return_as="generator_unordered")
    found = run(joblib.delayed(adjusted_rand_indices)(*task) for task in tasks)
    return [row for rows in track(found, "Replications", len(tasks)) for row in rows]


def adjusted_rand_indices(s: int, noise: float, replication: int) -> list[dict]:
    """One replication: the adjusted Rand index of every method's answer to the truth."""
    setting = SETTINGS[s]
    simulation, choice, *seeds = np.random.SeedSequence([s, round(100 * noise), replication]).spawn(2 + len(ROWS))
    made = setting.simulated(noise, simulation)
    draws, truth = made.draws, made.truth
    any_draw = draws.labels[np.random.default_rng(choice).integers(draws.n_draws)]
    found = {
        ("Input", False): np.mean([closeness(labels, truth) for labels in draws.labels]),
        ("A random draw", False): closeness(any_draw, truth),
        ("Oracle", False): closeness(made.oracle(), truth),
    }
    for row, seed in zip(ROWS, seeds, strict=True):
        labels = answer(row, draws, np.random.default_rng(seed))
        found[row.name, False] = closeness(labels, truth)
        if row.refined:
            refined = refine_partition(draws, labels, order="jacobi", passes=1)
            found[row.name, True] = closeness(refined, truth)
    cell = {"set": s, "noise": noise, "replication": replication}
    return [{**cell, "method": name, "refined": refined, "ari": ari} for (name, refined), ari in found.items()]


def answer(row: Row, draws: pc.results.PartitionDraws, rng: np.random.Generator) -> np.ndarray:
    """What a method finds; not by consensus_partition(), whose lower bounds nobody would read here."""
    method = pc.METHODS[row.method].function
    found = method(draws, pc.binder(), Task(rng, row.n_clusters), **row.options)
    return draws.as_labels(found.labels)


def closeness(labels: object, truth: np.ndarray) -> float:
    """Adjusted Rand index."""
    return 1.0 - pc.partition_loss(labels, truth, loss="one_minus_ari")


def table_of_cells(results: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell of Tables 1 to 3: mean and standard error of ours, and the paper's."""
    by = results[results["noise"].isin(NOISES)].groupby(["noise", "method", "refined", "set"])["ari"]
    cells = pd.DataFrame({"ours": by.mean(), "standard_error": by.sem(), "replications": by.size()}).reset_index()
    beside = dict(SIMPLE) | {row.name: row.printed for row in ROWS}
    rows = [(cell.noise, beside[cell.method], cell.refined, f"set {cell.set}") for cell in cells.itertuples()]
    cells["paper"] = PRINTED.stack().reindex(rows).to_numpy()
    cells["difference"] = cells["ours"] - cells["paper"]
    order = [name for name, _ in SIMPLE[:2]] + [row.name for row in ROWS] + ["Oracle"]
    cells["method"] = pd.Categorical(cells["method"], order, ordered=True)
    return cells.sort_values(["noise", "method", "refined", "set"])


def agreement_by_row(cells: pd.DataFrame) -> pd.DataFrame:
    """For every row that the paper has: its cells, those that agree, and the largest difference."""
    printed = cells.dropna(subset="paper")
    names = [f"{cell.method}{', refined' * cell.refined}" for cell in printed.itertuples()]
    away = printed["difference"].abs().groupby(names, sort=False)
    close = away.agg(lambda d: (d <= CLOSE + 1e-9).sum())  # 1.00 - 0.95 is above 0.05 by rounding
    return pd.DataFrame({"cells": away.size(), "close": close, "farthest": away.max()})


def near_oracle(cells: pd.DataFrame, name: str) -> str:
    """In how many cells a method is as near to the oracle as it should be."""
    means = cells.pivot_table("ours", ["noise", "set"], "method", observed=True)
    behind = means["Oracle"] - means[name]
    allowed = behind.index.get_level_values("noise").map(NEAR_ORACLE)
    noise, s = behind.idxmax()
    return (
        f"{name}: {(behind <= allowed).sum()} of {behind.size} cells within 0.03 of the oracle (0.05 at p = 0.65), "
        f"the farthest {behind.max():.3f} behind, in set {s} at p = {noise}"
    )


def pages(cells: pd.DataFrame) -> Iterator[str]:
    """A table for each noise, as the paper has them: methods down, settings across."""
    paper = cells["paper"].map(" / {:.2f}".format).where(cells["paper"].notna(), "")
    text = cells.assign(cell=cells["ours"].map("{:.2f}".format) + paper)
    text = text.assign(set="Set " + text["set"].astype(str), refined=np.where(text["refined"], "yes", ""))
    for noise, page in text.groupby("noise"):
        rows = page.pivot(index=["method", "refined"], columns="set", values="cell").reset_index().to_dict("records")
        yield "\n".join([f"**p = {noise}: ours / the paper's**", "", *markdown(rows)])
