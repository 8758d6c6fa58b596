"""How long a search of 1,500 items and 3,000 draws goes on after Ctrl-C, pressed at moments spread over its time.

Ctrl-C is a signal to this process, sent by a thread. The last column is what `seconds` makes of the same search: by
how much it is late, for limits at the same moments. On a busy machine all times are longer, that of the search too.
"""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np

import posterior_consensus as pc
from benchmarks._timing import is_smallest, print_table, random_draws

_LOSSES = "vi", "binder", "nid"
_N_CLUSTERS = 20, 100
_MOMENTS = 5


def main() -> None:
    """Print the worst and the median delay for each loss."""
    smallest = is_smallest()
    size = (200, 600) if smallest else (3_000, 1_500)
    rows = []
    for n_clusters in _N_CLUSTERS[:1] if smallest else _N_CLUSTERS:
        draws = pc.as_partition_draws(random_draws(*size, n_clusters))
        for loss in _LOSSES[:1] if smallest else _LOSSES:
            _search(draws, loss)  # which may compile
            whole = _seconds(lambda loss=loss, draws=draws: _search(draws, loss))
            moments = whole * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
            pressed = [_after_interrupt(draws, loss, moment) for moment in moments]
            late = [_seconds(lambda at=at, loss=loss, draws=draws: _search(draws, loss, at)) - at for at in moments]
            rows.append(
                [f"{n_clusters} clusters", loss, whole, float(np.median(pressed)), max(pressed), max(0.0, *late)]
            )
    print_table(["posterior", "loss", "search (s)", "Ctrl-C: median (s)", "worst", "seconds: worst"], rows)


def _search(draws: pc.results.PartitionDraws, loss: str, seconds: float | None = None) -> None:
    limit = {} if seconds is None else {"seconds": seconds}
    pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False, **limit)


def _seconds(function: Callable[[], None]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _after_interrupt(draws: pc.results.PartitionDraws, loss: str, moment: float) -> float:
    """Seconds from Ctrl-C to the end of the call; 0 where it ended before."""
    sent: list[float] = []

    def press() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(moment, press)
    timer.start()
    ended = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _search(draws, loss)
        ended = time.perf_counter()
        timer.cancel()
        timer.join()
        time.sleep(0.01)  # for a signal that was sent after the search
    except KeyboardInterrupt:  # before there was a partition, or after the search
        ended = ended or time.perf_counter()
    return max(0.0, ended - sent[0]) if sent else 0.0


if __name__ == "__main__":
    main()
