"""How often, and by how much, something else ends below the default search, over families of posteriors and losses.

The rivals: a plain descent by single items from many simple starts, every method of METHODS that is feasible for the
size, and R's salso at its defaults where it is installed and has the loss. All partitions are judged by
`expected_loss`. `--cache FILE` keeps what the rivals found, so that while the search is worked on a run takes only its
own time. The methods take seconds to minutes for each call, and run with `--rivals descent methods salso` only.
"""

import json
import statistics
import subprocess
import tempfile
import warnings
import zlib
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import posterior_consensus as pc
from benchmarks._descent import best_by_descent
from benchmarks._posteriors import FAMILIES, Posterior
from benchmarks._runner import HERE, used
from benchmarks._salso import IN_SALSO, has_salso, written

NOT_TRIED = "greedy", "enumeration", "exact", "sdp"  # the search itself, and what takes ten items or many minutes
ASKED = "free", "3", "meant"  # numbers of clusters: none given, three, as many as the posterior was made with
SEEDS = 3
REPEATS = 3
TOLERANCE = 1e-9  # relative difference of losses below which neither is beaten
WORST_SHOWN = 15


OPTIONS = {
    "--quick": {"action": "store_true", "help": "the descent alone, no number of clusters given"},
    "--times": {"action": "store_true", "help": "seconds of the search and of salso instead, alternately"},
    "--families": {"nargs": "+", "choices": FAMILIES, "default": list(FAMILIES), "metavar": "FAMILY"},
    "--losses": {"nargs": "+", "choices": pc.LOSSES, "default": list(pc.LOSSES), "metavar": "LOSS"},
    "--clusters": {"nargs": "+", "choices": ASKED},
    "--rivals": {"nargs": "+", "choices": ("descent", "methods", "salso")},
    "--seeds": {"type": int, "default": SEEDS, "help": "posteriors of each family"},
    "--first-seed": {"type": int, "default": 0},
    "--cache": {"type": Path, "help": "file for the losses that rivals reach, made if not there"},
}


def tables(smallest, **given):
    options = SimpleNamespace(**given)
    if smallest:
        options.families, options.losses, options.quick, options.seeds = ["splits", "weighted"], ["vi"], True, 1
    options.clusters = options.clusters or (ASKED[:1] if options.quick else ASKED)
    options.rivals = options.rivals or (["descent"] if options.quick else ["descent", "salso"])
    with _Salso() if "salso" in options.rivals and has_salso() else nullcontext() as salso:
        for loss in options.losses:  # compiles
            _ours(pc.as_partition_draws([[0, 0, 1, 1], [0, 0, 0, 1]]), loss, 0)
        if options.times:
            calls = list(_timed(options, salso))
            yield "", (_times("loss", name, calls) for name in options.losses)
            yield "", (_times("family", name, calls) for name in options.families)
        else:
            results = list(_results(options, salso))
            yield "", _by_family(options, results)
            yield "", _by_rival(results)
            yield "", _worst(results)


def _cases(options):
    """Family, seed, posterior, its draws, loss and number of clusters asked for (by name and as it is given)."""
    for family in options.families:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            posterior = FAMILIES[family](np.random.default_rng(seed))
            draws = pc.as_partition_draws(posterior.labels, weights=posterior.counts)
            for loss in options.losses:
                for asked in options.clusters:
                    yield family, seed, posterior, draws, loss, asked, _number(asked, posterior)


def _number(asked, posterior):
    return {"free": None, "3": 3, "meant": posterior.n_clusters}[asked]


class _Result(NamedTuple):
    """Where the search ended, and by how many percent it is above what each rival reached."""

    family: str
    seed: int
    loss: str
    asked: str
    expected_loss: float
    excess: dict[str, float]
    seconds: float

    @property
    def worst(self) -> float:
        return max(self.excess.values(), default=0.0)


def _results(options, salso):
    cache = _Cache(options.cache)
    for family, seed, posterior, draws, loss, asked, n_clusters in _cases(options):
        found, seconds = _ours(draws, loss, seed, n_clusters)
        key = f"{family}/{seed}/{loss}/{asked}/{zlib.crc32(np.ascontiguousarray(posterior.labels))}"
        reached = _rivals(cache, key, options, salso, posterior, draws, loss, seed, n_clusters)
        excess = {rival: _excess(found.expected_loss, value) for rival, value in reached.items()}
        yield _Result(family, seed, loss, asked, found.expected_loss, excess, seconds)


def _ours(draws, loss, seed, n_clusters=None):
    given = {"loss": loss, "n_clusters": n_clusters, "random_seed": seed, "progressbar": False}
    found, seconds, *_ = used(pc.consensus_partition, draws, **given)
    if n_clusters not in (None, found.n_clusters):
        raise AssertionError(f"the search ended with {found.n_clusters} clusters, not {n_clusters}")
    return found, seconds


def _excess(ours, theirs):
    """Percent by which ours is above theirs; 0 where it is not."""
    if ours <= theirs * (1 + TOLERANCE) + 1e-15:
        return 0.0
    return 100 * (ours / theirs - 1) if theirs > 0 else np.inf


def _rivals(cache, key, options, salso, posterior, draws, loss, seed, n_clusters):
    """Expected loss that each rival reached, without those that have no partition of so many clusters."""
    calls = {}
    if "descent" in options.rivals:
        calls["descent"] = lambda: best_by_descent(*_as_arrays(draws, posterior), pc.LOSSES[loss](), n_clusters)
    if salso and loss in IN_SALSO and n_clusters is None:
        calls["salso"] = lambda: salso.answer(posterior, loss, seed)[1]
    if "methods" in options.rivals:
        for name in pc.METHODS:
            if name not in NOT_TRIED:
                calls[name] = lambda name=name: _by_method(draws, loss, name, n_clusters)
    reached = {}
    for rival, call in calls.items():
        value = cache.value(f"{key}/{rival}", lambda call=call: _judged(draws, call(), loss))
        if value is not None:
            reached[rival] = value
    return reached


def _as_arrays(draws, posterior):
    counts = np.ones(draws.n_draws) if posterior.counts is None else posterior.counts
    return draws.labels.astype(np.int64), counts / counts.sum()


def _by_method(draws, loss, name, n_clusters):
    if name == "best_draw" and n_clusters not in (None, *draws.n_clusters):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are fewer clusters than asked for
        found = pc.consensus_partition(
            draws, loss=loss, method=name, n_clusters=n_clusters, random_seed=0, progressbar=False
        )
    return found.labels.values if n_clusters in (None, found.n_clusters) else None


def _judged(draws, labels, loss):
    return None if labels is None else pc.expected_loss(draws, labels, loss=loss)["expected_loss"].item()


def _by_family(options, results):
    """Of each family and loss: beaten in how many calls, the worst excess, by whom."""
    for family in [*options.families, "all"]:
        own = [one for one in results if family in (one.family, "all")]
        cells = {loss: _beaten([one for one in own if loss in (one.loss, "all")]) for loss in [*options.losses, "all"]}
        yield {"beaten": family, **cells, "median ms": f"{1000 * statistics.median(one.seconds for one in own):.0f}"}


def _beaten(results):
    n_beaten = sum(one.worst > 0 for one in results)
    cell = f"{n_beaten} of {len(results)}"
    return f"{cell}, {max(one.worst for one in results):.3f}%" if n_beaten else cell


def _by_rival(results):
    for rival in dict.fromkeys(name for one in results for name in one.excess):
        own = [one for one in results if rival in one.excess]
        below = Counter(one.loss for one in own if one.excess[rival] > 0)
        yield {
            "rival": rival,
            "calls": len(own),
            "below ours": below.total(),
            "worst excess": f"{max(one.excess[rival] for one in own):.3f}%",
            "by loss": ", ".join(f"{loss} {below[loss]}" for loss in pc.LOSSES if below[loss]),
        }


def _worst(results):
    for one in sorted(results, key=lambda one: -one.worst)[:WORST_SHOWN]:
        if one.worst > 0:
            yield {
                "family": one.family,
                "seed": one.seed,
                "loss": one.loss,
                "clusters": one.asked,
                "expected loss": f"{one.expected_loss:.9g}",
                "worst excess": f"{one.worst:.3f}%",
                "beside": max(one.excess, key=one.excess.get),
            }


def _timed(options, salso):
    """Family, loss, and median seconds of the search and of salso, of each call without a number of clusters."""
    for family, seed, posterior, draws, loss, _, n_clusters in _cases(options):
        if n_clusters is None:
            ours, theirs = [], []
            for repeat in range(REPEATS):
                ours.append(_ours(draws, loss, seed + 1000 * repeat)[1])
                if salso and loss in IN_SALSO:
                    theirs.append(salso.answer(posterior, loss, seed + 1000 * repeat)[0])
            yield family, loss, statistics.median(ours), statistics.median(theirs) if theirs else None


def _times(title, name, calls):
    """Of a loss or family: medians and longest in milliseconds, and what is asked of the times."""
    own = [call[2:] for call in calls if name in call[:2]]
    ours, theirs = [1000 * a for a, _ in own], [1000 * b for _, b in own if b is not None]
    ratios = [b / a for a, b in own if b is not None and b >= 0.1]
    rest = [1000 * a for a, b in own if b is not None and b < 0.1]
    return {
        title: name,
        "calls": len(own),
        "ours, ms": f"{statistics.median(ours):.1f}",
        "longest": f"{max(ours):.1f}",
        "salso, ms": f"{statistics.median(theirs):.0f}" if theirs else "",
        "longest of salso": f"{max(theirs):.0f}" if theirs else "",
        "least ratio where salso takes 0.1 s": f"{min(ratios):.1f}" if ratios else "",
        "longest of ours, ms, where it takes less": f"{max(rest):.1f}" if rest else "",
    }


class _Cache:
    """Numbers by key in a file, a line of JSON for each."""

    def __init__(self, file):
        self._file = file
        lines = file.read_text().splitlines() if file and file.exists() else []
        self._values = dict(map(json.loads, lines))

    def value(self, key, call):
        if key not in self._values:
            self._values[key] = call()
            if self._file:
                with self._file.open("a") as opened:
                    print(json.dumps([key, self._values[key]]), file=opened)
        return self._values[key]


class _Salso:
    """An R process that answers one call of salso() after another."""

    def __init__(self):
        self._process = subprocess.Popen(
            ["Rscript", HERE / "salso_answers.R"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._folder = tempfile.TemporaryDirectory()
        self.answer(Posterior(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]), 2), "vi", 0)

    def answer(self, posterior: Posterior, loss: str, seed: int) -> tuple[float, np.ndarray]:
        """Seconds and labels; salso has no weights, so that a draw stands there as often as it counts."""
        counts = 1 if posterior.counts is None else posterior.counts
        labels = np.repeat(posterior.labels, counts, axis=0)
        file = written(labels, self._folder.name)
        print(file, *labels.shape, loss, seed, sep="\t", file=self._process.stdin)
        seconds, *estimate = self._process.stdout.readline().split()
        return float(seconds), np.array(estimate, dtype=np.int64)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()
