"""How often, and by how much, something else ends below the default search, over families of posteriors and losses.

The rivals: a plain descent by single items from many simple starts, every method of METHODS that is feasible for the
size, and R's salso at its defaults where it is installed and has the loss. All partitions are judged by
`expected_loss`. `--cache FILE` keeps what the rivals found, so that while the search is worked on a run takes only its
own time. The methods take seconds to minutes for each call, and run with `--rivals descent methods salso` only.
`--quick` runs the descent alone, with no number of clusters given; `--times` runs the search and salso alternately
instead.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy as np

import posterior_consensus as pc
from benchmarks._descent import best_by_descent
from benchmarks._posteriors import FAMILIES, Posterior
from benchmarks._timing import print_table
from benchmarks.search import IN_SALSO, _has_salso, _written

ASK_SALSO = Path(__file__).with_name("salso_answers.R")
NOT_TRIED = "greedy", "enumeration", "exact", "sdp"  # the search itself, and what takes ten items or many minutes
ASKED = "free", "3", "meant"  # numbers of clusters: none given, three, as many as the posterior was made with
SEEDS = 3
REPEATS = 3
TOLERANCE = 1e-9  # relative difference of losses below which neither is beaten
WORST_SHOWN = 15


def main() -> None:
    """Print where the search was beaten, by family and loss, by rival, and the worst cases."""
    options = _options()
    salso = _Salso() if "salso" in options.rivals and _has_salso() else None
    if "salso" in options.rivals and salso is None:
        print("R with salso is not there: its rows are left out.")
    for loss in options.losses:  # compiles
        _ours(pc.as_partition_draws([[0, 0, 1, 1], [0, 0, 0, 1]]), loss, 0)
    with contextlib.ExitStack() as stack:
        if salso:
            stack.callback(salso.close)
        if options.times:
            _print_times(options, salso)
        else:
            _print_beaten(options, salso)


def _options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smallest", action="store_true", help="run at the smallest size only, as the tests do")
    parser.add_argument("--quick", action="store_true", help="the descent alone, no number of clusters given")
    parser.add_argument("--times", action="store_true", help="seconds of the search and of salso instead, alternately")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--losses", nargs="+", choices=pc.LOSSES, default=list(pc.LOSSES), metavar="LOSS")
    parser.add_argument("--clusters", nargs="+", choices=ASKED, default=None)
    parser.add_argument("--rivals", nargs="+", choices=("descent", "methods", "salso"), default=None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="posteriors of each family")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="file for the losses that rivals reach, made if not there")
    options = parser.parse_args()
    if options.smallest:
        options.families, options.losses, options.quick, options.seeds = ["splits", "weighted"], ["vi"], True, 1
    options.clusters = options.clusters or (ASKED[:1] if options.quick else ASKED)
    options.rivals = options.rivals or (["descent"] if options.quick else ["descent", "salso"])
    return options


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


def _print_beaten(options, salso):
    cache = _Cache(options.cache)
    results = []
    for family, seed, posterior, draws, loss, asked, n_clusters in _cases(options):
        found, seconds = _ours(draws, loss, seed, n_clusters)
        key = f"{family}/{seed}/{loss}/{asked}/{zlib.crc32(np.ascontiguousarray(posterior.labels))}"
        reached = _rivals(cache, key, options, salso, posterior, draws, loss, seed, n_clusters)
        excess = {rival: _excess(found.expected_loss, value) for rival, value in reached.items()}
        results.append((family, seed, loss, asked, found.expected_loss, excess, seconds))
    _print_by_family(options, results)
    print()
    _print_by_rival(results)
    print()
    worst = sorted(results, key=lambda one: -max(one[5].values(), default=0))
    rows = [
        [family, seed, loss, asked, f"{ours:.9g}", f"{max(excess.values()):.3f}%", max(excess, key=excess.get)]
        for family, seed, loss, asked, ours, excess, _ in worst[:WORST_SHOWN]
        if any(excess.values())
    ]
    print_table(["family", "seed", "loss", "clusters", "expected loss", "worst excess", "beside"], rows)


def _ours(draws, loss, seed, n_clusters=None):
    began = time.perf_counter()
    found = pc.consensus_partition(draws, loss=loss, n_clusters=n_clusters, random_seed=seed, progressbar=False)
    seconds = time.perf_counter() - began
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


def _print_by_family(options, results):
    """Of each family and loss: beaten in how many calls, the worst excess, by whom."""
    rows = []
    for family in [*options.families, "all"]:
        row = [family]
        for loss in [*options.losses, "all"]:
            own = [one for one in results if family in (one[0], "all") and loss in (one[2], "all")]
            row.append(_beaten(own))
        seconds = [one[6] for one in results if family in (one[0], "all")]
        rows.append([*row, f"{1000 * statistics.median(seconds):.0f}"])
    print_table(["beaten", *options.losses, "all", "median ms"], rows)


def _beaten(results):
    worst = [max(one[5].values(), default=0) for one in results]
    n_beaten = sum(value > 0 for value in worst)
    cell = f"{n_beaten} of {len(results)}"
    return f"{cell}, {max(worst):.3f}%" if n_beaten else cell


def _print_by_rival(results):
    rows = []
    for rival in dict.fromkeys(name for one in results for name in one[5]):
        own = [one for one in results if rival in one[5]]
        values = [one[5][rival] for one in own]
        by_loss = [
            f"{loss} {n}" for loss in pc.LOSSES if (n := sum(one[5][rival] > 0 for one in own if one[2] == loss))
        ]
        rows.append([rival, len(own), sum(value > 0 for value in values), f"{max(values):.3f}%", ", ".join(by_loss)])
    print_table(["rival", "calls", "below ours", "worst excess", "by loss"], rows)


def _print_times(options, salso):
    rows = []
    for family, seed, posterior, draws, loss, _, n_clusters in _cases(options):
        if n_clusters is not None:
            continue
        ours, theirs = [], []
        for repeat in range(REPEATS):
            ours.append(_ours(draws, loss, seed + 1000 * repeat)[1])
            if salso and loss in IN_SALSO:
                theirs.append(salso.answer(posterior, loss, seed + 1000 * repeat)[0])
        rows.append((family, loss, statistics.median(ours), statistics.median(theirs) if theirs else None))
    header = ["loss", "calls", "ours, ms", "longest", "salso, ms", "longest", "least ratio where salso takes 0.1 s"]
    print_table([*header, "longest of ours, ms, where it takes less"], [_times(loss, rows) for loss in options.losses])
    print()
    print_table(
        ["family", *header[1:], "longest of ours, ms, where it takes less"],
        [_times(name, rows) for name in options.families],
    )


def _times(name, rows):
    """Of a loss or family: medians and longest in milliseconds, and what is asked of the times."""
    own = [row[2:] for row in rows if name in row[:2]]
    ours, theirs = [1000 * row[0] for row in own], [1000 * row[1] for row in own if row[1] is not None]
    row = [name, len(own), f"{statistics.median(ours):.1f}", f"{max(ours):.1f}"]
    if not theirs:
        return [*row, "", "", "", ""]
    ratios = [b / a for a, b in own if b is not None and b >= 0.1]
    rest = [1000 * a for a, b in own if b is not None and b < 0.1]
    row += [f"{statistics.median(theirs):.0f}", f"{max(theirs):.0f}"]
    return [*row, f"{min(ratios):.1f}" if ratios else "", f"{max(rest):.1f}" if rest else ""]


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
            ["Rscript", ASK_SALSO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._folder = tempfile.TemporaryDirectory()
        self.answer(Posterior(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]), 2), "vi", 0)

    def answer(self, posterior: Posterior, loss: str, seed: int) -> tuple[float, np.ndarray]:
        """Seconds and labels; salso has no weights, so that a draw stands there as often as it counts."""
        counts = 1 if posterior.counts is None else posterior.counts
        labels = np.repeat(posterior.labels, counts, axis=0)
        file = _written(labels, Path(self._folder.name))
        print(file, *labels.shape, loss, seed, sep="\t", file=self._process.stdin)
        seconds, *estimate = self._process.stdout.readline().split()
        return float(seconds), np.array(estimate, dtype=np.int64)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


if __name__ == "__main__":
    main()
