"""How long a search of 1,500 items and 3,000 draws goes on after Ctrl-C, pressed at moments spread over its time.

Ctrl-C is a signal to this process, sent by a thread. The last column is what `seconds` makes of the same search: by
how much it is late, for limits at the same moments. On a busy machine all times are longer, that of the search too.
"""

import os
import signal
import threading
import time
import warnings

import numpy as np

import posterior_consensus as pc
from benchmarks._data import random_draws
from benchmarks._runner import used

_LOSSES = "vi", "binder", "nid"
_N_CLUSTERS = 20, 100
_MOMENTS = 5


def tables(smallest):
    yield "", _rows(*((200, 600, ["vi"], [20]) if smallest else (3_000, 1_500, _LOSSES, _N_CLUSTERS)))


def _rows(n_draws, n_items, losses, numbers):
    for n_clusters in numbers:
        draws = pc.as_partition_draws(random_draws(n_draws, n_items, n_clusters))
        for loss in losses:
            _search(draws, loss)  # which may compile
            whole = used(_search, draws, loss).seconds
            moments = whole * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
            pressed = [_after_interrupt(draws, loss, moment) for moment in moments]
            late = [used(_search, draws, loss, seconds=moment).seconds - moment for moment in moments]
            yield {
                "posterior": f"{n_clusters} clusters",
                "loss": loss,
                "search (s)": whole,
                "Ctrl-C: median (s)": float(np.median(pressed)),
                "worst": max(pressed),
                "seconds: worst": max(0.0, *late),
            }


def _search(draws, loss, **limit):
    pc.consensus_partition(draws, loss=loss, random_seed=1, progressbar=False, **limit)


def _after_interrupt(draws, loss, moment):
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
