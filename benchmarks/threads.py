"""Seconds and CPU seconds of large posteriors on one thread and on more, in turn: the least of three calls each.

Draws as of `scale`. Each number of threads has a process of its own. CPU seconds hardly depend on the number of threads
or on how busy the machine is; where they are the same and the seconds are too, a step does not scale.
"""

import os
from contextlib import ExitStack

import posterior_consensus as pc
from benchmarks._runner import process, used
from benchmarks.scale import FUNCTIONS, WARM_UP, draws_of

SIZE, SMALLEST = (1_000_000, 500), (300, 40)
SHOWN = "draws", "vi", "ball", "items"
REPEATS = 3
OPTIONS = {"--threads": {"type": int, "nargs": "*", "default": [1, 2], "help": "numbers of threads"}}


def tables(smallest, threads):
    size = SMALLEST if smallest else SIZE
    yield f"{size[0]:,} items x {size[1]:,} draws", _rows(*size, threads)


def _rows(n_items, n_draws, threads):
    with ExitStack() as open_processes:
        workers = {}
        for number in threads:
            os.environ["NUMBA_NUM_THREADS"] = str(number)  # which a process reads when it begins
            workers[number] = open_processes.enter_context(process())
            workers[number].submit(prepare, n_items, n_draws).result()
        del os.environ["NUMBA_NUM_THREADS"]
        for name in SHOWN:
            calls = [[one.submit(measure, name).result() for one in workers.values()] for _ in range(REPEATS)]
            least = [min(column) for column in zip(*calls, strict=True)]
            seconds = {f"{number} threads": one[0] for number, one in zip(workers, least, strict=True)}
            cpu = {f"{number}, CPU": one[1] for number, one in zip(workers, least, strict=True)}
            yield {"function": name} | seconds | cpu


def prepare(n_items, n_draws):
    """Make the draws of this process, and call each function on few items before, for its kernels."""
    _made["labels"] = draws_of(n_items, n_draws).reshape(4, n_draws // 4, n_items)
    for few, n in WARM_UP:
        if few < n_items:
            little = pc.as_partition_draws(draws_of(few, n))
            for name in SHOWN:
                FUNCTIONS[name](little, little.labels[0])
    _made["draws"] = pc.as_partition_draws(_made["labels"])
    _made["partition"] = pc.consensus_partition(_made["draws"], random_seed=1, progressbar=False).labels.values


def measure(name):
    """Seconds and CPU seconds of a call."""
    if name == "draws":
        call = used(pc.as_partition_draws, _made["labels"])
    else:
        draws = pc.as_partition_draws(_made["labels"]) if name == "items" else _made["draws"]
        call = used(FUNCTIONS[name], draws, _made["partition"])
    return call.seconds, call.cpu


_made = {}
