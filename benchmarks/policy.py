"""Which partitions the default search ends at, and when, beside an earlier version and rivals that take longer.

`--before FOLDER` names a checkout of the earlier version. Each version is called in a process of its own, in turn.
The rivals: a plain descent by single items from many simple starts, the hierarchical tree, the best draw, and a search
from both. `--seeds` are those of the posteriors, of which none was looked at while the policy was made.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import posterior_consensus as pc
from benchmarks._descent import best_by_descent
from benchmarks._posteriors import FAMILIES, Posterior
from benchmarks._runner import HERE

WORKER = Path(__file__).with_name("_policy_worker.py")
TOLERANCE = 1e-9  # relative difference of losses below which they are equal
SETS = "small", "named", "records", "harder-records", "fixed", "large"
REPEATS = 3  # calls of named posteriors, with a seed each
OPTIONS = {
    "--before": {"type": Path, "help": "checkout of an earlier version"},
    "--sets": {"nargs": "+", "choices": SETS, "default": ["small"]},
    "--seeds": {"nargs": "+", "type": int, "default": [700, 701, 702]},
    "--losses": {"nargs": "+", "choices": pc.LOSSES, "default": list(pc.LOSSES), "metavar": "LOSS"},
    "--families": {"nargs": "+", "choices": FAMILIES, "default": list(FAMILIES), "metavar": "FAMILY"},
    "--sizes": {"nargs": "+", "type": int, "default": [1000, 3000], "help": "records"},
    "--files": {"nargs": "+", "type": Path, "default": [], "help": "archives with `labels`, of the set named"},
    "--rivals": {"action": "store_true", "help": "let rivals search small posteriors, too"},
}


def tables(smallest, **given):
    """A table for each set of posteriors."""
    options = SimpleNamespace(**given)
    if smallest:
        options.seeds, options.losses, options.families, options.rivals = [0], ["vi"], ["splits"], True
    checkouts = ({"before": options.before} if options.before else {}) | {"now": HERE.parent}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        versions = {name: _Worker(checkout) for name, checkout in checkouts.items()}
        for worker in versions.values():
            stack.callback(worker.close)
        for kind in options.sets:
            rivals = options.rivals and kind == "small"
            results = [
                {"case": name, "loss": loss} | _answers(versions, folder, posterior, loss, n_clusters, seed, rivals)
                for name, posterior, loss, n_clusters, seed in _cases(kind, options)
            ]
            yield kind, _rows(kind, results, list(versions))


def _cases(kind, options):
    """Name, posterior, loss, number of clusters and seed of each call."""
    both = [loss for loss in ("vi", "binder") if loss in options.losses]
    if kind in ("small", "fixed"):
        losses = (
            options.losses if kind == "small" else [*both, *(one for one in ("nvi", "id") if one in options.losses)]
        )
        for family in options.families:
            for seed in options.seeds:
                posterior = FAMILIES[family](np.random.default_rng(seed))
                for loss in losses:
                    numbers = [None] if kind == "small" else sorted({3, posterior.n_clusters})
                    yield from ((family, posterior, loss, number, seed) for number in numbers)
    elif kind == "named":
        for file in options.files:
            posterior = Posterior(np.load(file)["labels"], 0)
            yield from ((file.stem, posterior, loss, None, seed) for loss in both for seed in range(REPEATS))
    elif kind == "large":
        yield "10^6 x 200", _large(), "vi", None, 0
    else:
        for n_items in options.sizes:
            for seed in options.seeds:
                posterior = _records(np.random.default_rng(seed), n_items, kind == "harder-records")
                yield from ((f"{n_items:,}", posterior, loss, None, seed) for loss in both)


def _records(rng, n_items, is_hard):
    """Draws of clusters of one to five records; the harder ones leave theirs often, for others as well."""
    truth = np.repeat(np.arange(n_items), rng.choice([1, 2, 3, 5], n_items, p=[0.4, 0.3, 0.2, 0.1]))[:n_items]
    stays = rng.beta(4, 1.5, n_items) if is_hard else rng.beta(8, 1.5, n_items)
    alone = np.arange(n_items, 2 * n_items)
    draws = []
    for _ in range(200):
        other = np.where(rng.random(n_items) < 0.3, rng.permuted(truth), alone) if is_hard else alone
        draws.append(np.where(rng.random(n_items) > stays, other, truth))
    return Posterior(np.array(draws, np.int32), int(truth[-1]) + 1)


def _large():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 12, 10**6).astype(np.uint8)
    noise = rng.random((200, 10**6), np.float32) < 0.1
    return Posterior(np.where(noise, rng.integers(0, 12, (200, 10**6), np.uint8), truth), 12)


def _answers(versions, folder, posterior, loss, n_clusters, seed, rivals):
    arrays = {"labels": posterior.labels} | ({} if posterior.counts is None else {"counts": posterior.counts})
    file = folder / f"{zlib.crc32(np.ascontiguousarray(posterior.labels))}.npz"
    if not file.exists():
        np.savez(file, **arrays)
    for name in list(versions)[:: 1 if seed % 2 else -1]:
        versions[name].read(file)
    asked = {"loss": loss, "random_seed": seed} | ({} if n_clusters is None else {"n_clusters": n_clusters})
    told = {name: versions[name].answer(asked) for name in list(versions)[:: 1 if seed % 2 else -1]}
    return told | ({"rivals": _rivals(posterior, loss, seed)} if rivals else {})


def _rivals(posterior, loss, seed):
    """The least expected loss of each rival."""
    draws = pc.as_partition_draws(posterior.labels, weights=posterior.counts)
    counts = np.ones(draws.n_draws) if posterior.counts is None else posterior.counts
    quiet = {"loss": loss, "progressbar": False}
    descent = best_by_descent(draws.labels.astype(np.int64), counts / counts.sum(), pc.LOSSES[loss](), None)
    simple = {name: pc.consensus_partition(draws, method=name, **quiet) for name in ("hierarchical", "best_draw")}
    given = pc.consensus_partition(
        draws, starts=[descent, *simple.values()], n_perturbations=0, random_seed=seed + 1, **quiet
    )
    found = {name: one.expected_loss for name, one in simple.items()} | {"given starts": given.expected_loss}
    return found | {"descent": pc.expected_loss(draws, descent, loss=loss)["expected_loss"].item()}


class _Worker:
    """A process that searches with one version of the package."""

    def __init__(self, checkout: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._file = None
        with tempfile.TemporaryDirectory() as folder:
            self._file = Path(folder) / "tiny.npz"
            np.savez(self._file, labels=np.array([[0, 0, 1, 1], [0, 0, 0, 1]]))
            for loss in pc.LOSSES:  # compiles
                self.answer({"loss": loss})

    def read(self, file: Path) -> None:
        self._file = file

    def answer(self, asked: dict[str, object]) -> dict[str, float]:
        print(json.dumps([str(self._file), asked]), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def _rows(kind, results, versions):
    """Of each version: how often it is beaten by rivals and by the other version, by how much, and its times."""
    losses = list(dict.fromkeys(one["loss"] for one in results))
    cases = list(dict.fromkeys(one["case"] for one in results))
    by_case = [(case, loss) for case in cases for loss in losses] if kind not in ("small", "fixed") else []
    for case, loss in [*by_case, *((None, loss) for loss in losses), (None, None)]:
        own = [one for one in results if case in (None, one["case"]) and loss in (None, one["loss"])]
        row = {"posterior": case or "all", "loss": loss or "all", "calls": len(own)}
        for name in versions:
            beaten = [_excess(one[name]["loss"], min(one["rivals"].values())) for one in own if "rivals" in one]
            other = [_excess(one[name]["loss"], min(one[version]["loss"] for version in versions)) for one in own]
            cpu = [1000 * one[name]["cpu"] for one in own]
            row |= {f"{name}: beaten": _counted(beaten), f"{name}: above the other": _counted(other)}
            row |= {f"{name}: median ms": f"{statistics.median(cpu):.1f}", f"{name}: all, s": sum(cpu) / 1000}
        yield row


def _excess(ours, theirs):
    """Percent by which ours is above theirs; 0 where it is not."""
    if ours <= theirs * (1 + TOLERANCE) + 1e-15:
        return 0.0
    return 100 * (ours / theirs - 1) if theirs > 0 else np.inf


def _counted(excesses):
    above = sum(one > 0 for one in excesses)
    return f"{above}, {max(excesses):.3f}%" if above else "0"
