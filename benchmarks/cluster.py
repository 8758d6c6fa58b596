"""Work on a dask cluster beside the threads of one process: time, bytes moved, and what the cost model says of both.

Workers are processes of this machine with one thread each. The cost model (`costs`) counts bytes and steps; four rates
turn them into seconds. They are measured on their own: the time per label of the door's and a pass's kernels on a block
in this process, on one thread; the time of a task that does nothing; and the bytes per second between two workers.
"""

from itertools import product
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import posterior_consensus as pc
from benchmarks._data import random_draws
from benchmarks._runner import median_seconds, used
from posterior_consensus.ensemble import dask_labels
from posterior_consensus.kernels import ensemble
from posterior_consensus.runtime import executor

SIZES = [(50_000, 400), (100_000, 400), (200_000, 400)]
N_CLUSTERS, _NOISE = 10, 0.1
LARGE = 100_000_000, 1_000, 100  # items, draws, workers
NETWORK = 1.25e9  # bytes a second and worker, of ten gigabits
_CHUNKS = 8  # of draws, as samplers leave them
_BLOCK = 2**26  # labels


class Rates(NamedTuple):
    """What turns counts into seconds."""

    door: float  # seconds a label
    step: float  # seconds a label and pass
    task: float  # seconds of the scheduler for a task
    network: float  # bytes a second and worker


class Costs(NamedTuple):
    """Of one step of the work."""

    tasks: float
    labels: float  # that all workers read, of one byte each
    moved: float  # bytes that workers send
    most: float  # bytes that the busiest worker sends or receives

    def seconds(self, rate: float, rates: Rates, n_workers: int) -> float:
        """Labels, transfers and scheduling one after the other: none hides another."""
        return self.labels * rate / n_workers + self.most / rates.network + self.tasks * rates.task


def costs(
    n_items: int, n_draws: int, n_clusters: int, n_workers: int, n_blocks: int, n_chunks: int = _CHUNKS
) -> dict[str, Costs]:
    """Count what the door and a pass over all draws take, for labels of one byte that lie in chunks of draws.

    The door numbers the labels where their chunks are, and sends all but those that stay with their worker, to make
    blocks of items of chunks of draws. A pass sends a partition (int32) to all workers, and sums of joint counts
    (int64) up a tree: workers add those of their own blocks first. The busiest worker takes part in the exchange as all
    do, and receives what the last sums of the tree are made of.
    """
    labels = n_items * n_draws
    apart = 1 - 1 / n_workers
    tables = 8 * n_draws * n_clusters**2
    return {
        "input": Costs(
            tasks=5 * n_chunks + 2 * n_blocks,
            labels=labels,
            moved=apart * labels,
            most=apart * labels / n_workers,
        ),
        "pass": Costs(
            tasks=n_blocks * 9 / 8,
            labels=labels,
            moved=4 * n_items * (n_workers - 1) + tables * n_workers,
            most=4 * n_items + 8 * tables,
        ),
    }


def joint_counts(labels, items, starts, partition, n_clusters):
    """Items in each cluster of each draw and of a partition: what its expected loss is made of."""
    return ensemble.joint_counts(labels, starts, partition[items], n_clusters)


def drawn(n_items, n_draws):
    """A dask array of draws, made where it will lie."""
    import dask.array as da
    from dask import delayed

    each = n_draws // _CHUNKS
    parts = [delayed(random_draws)(each, n_items, N_CLUSTERS, _NOISE, seed) for seed in range(_CHUNKS)]
    return da.concatenate([da.from_delayed(part, (each, n_items), np.uint8) for part in parts])


def tables(smallest):
    warm, sizes = ([], SIZES[:1]) if smallest else (SIZES[:1], SIZES)  # the first call loads kernels
    found, rates = _found([*warm, *sizes])
    kernels = f"input {rates.door * 1e9:.3g} ns a label, pass {rates.step * 1e9:.3g} ns"
    network = f"{rates.task * 1e3:.3g} ms a task; {rates.network / 1e9:.3g} GB/s between workers"
    yield f"rates: {kernels}; {network}", _times(sizes, found, rates)
    yield "", _bytes(sizes, found)
    size = f"{LARGE[0]:,} x {LARGE[1]:,} on {LARGE[2]} workers"
    yield f"{size}, {NETWORK / 1e9:.3g} GB/s each:", _predicted(rates._replace(network=NETWORK))


def _found(sizes):
    """What was measured by size and number of workers, 0 for the threads of this process; and the rates."""
    import dask
    from distributed import Client, LocalCluster, wait

    found = {(*size, 0): _measured(drawn(*size).compute(scheduler="threads")) for size in sizes}
    rates = _seconds_a_label()
    for n_workers in (1, 2):
        with (
            dask.config.set({"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}),
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as workers,
            Client(workers) as client,
        ):
            for size in sizes:
                array = client.persist(drawn(*size))
                wait(array)
                found[*size, n_workers] = _measured(array, client)
            if n_workers == 2:
                rates = Rates(*rates, _seconds_a_task(client), _bytes_a_second(client))
    return found, rates


def _measured(array, client=None):
    """Seconds and bytes that workers sent by step, and the number of blocks."""
    seconds, moved, kept = {}, {}, {}

    def step(name, function, repeats=3):
        before = _sent(client)
        (seconds[name],) = median_seconds(lambda: kept.update({name: function()}), repeats=repeats)
        moved[name] = (_sent(client) - before) / repeats

    step("input", lambda: _door(array))
    draws = kept["input"]
    partition = np.arange(draws.n_items, dtype=np.int32) % N_CLUSTERS
    given = draws.starts, partition, N_CLUSTERS
    step("pass", lambda: draws.backend.sum_blocks(joint_counts, *given))
    step("search", lambda: pc.consensus_partition(draws, random_seed=1, progressbar=False), repeats=1)
    return seconds, moved, len(draws.backend.item_blocks)


def _door(array):
    """The draws, all their blocks made."""
    draws = pc.as_partition_draws(array)
    list(draws.backend.map_blocks(_nothing))
    return draws


def _nothing(labels, items):
    return None


def _bytes_sent(dask_worker):
    return dask_worker.transfer_outgoing_bytes_total


def _sent(client):
    return 0 if client is None else sum(client.run(_bytes_sent).values())


def _seconds_a_label(n_items=40_000, n_draws=400):
    """Seconds of the door and of a pass, on one thread."""
    codes = random_draws(n_draws, n_items, N_CLUSTERS, _NOISE)
    starts = N_CLUSTERS * np.arange(n_draws + 1)
    partition = np.arange(n_items, dtype=np.int32) % N_CLUSTERS

    def door():
        rows = [dask_labels._numbered(block, "labels", 0)[0] for block in np.split(codes, _CHUNKS)]
        np.concatenate(rows)

    def one_pass():
        joint_counts(codes, slice(None), starts, partition, N_CLUSTERS)

    with patch.object(executor, "n_threads", lambda: 1):
        return [min(used(step).seconds for _ in range(5)) / codes.size for step in (door, one_pass)]


def _seconds_a_task(client, number=300):
    (seconds,) = median_seconds(lambda: client.gather(client.map(abs, range(number), pure=False)), repeats=3)
    return seconds / number


def _bytes_a_second(client, size=2 * 10**8):
    client.wait_for_workers(2)
    one, other = client.nthreads()
    array = client.submit(np.zeros, size, np.uint8, workers=[one], pure=False)
    few = client.submit(np.zeros, 1, workers=[one], pure=False)
    client.submit(len, few, workers=[other], pure=False).result()  # connects
    client.submit(len, array, workers=[one], pure=False).result()
    return size / used(client.submit(len, array, workers=[other], pure=False).result).seconds


def _times(sizes, found, rates):
    for n_items, n_draws in sizes:
        for n_workers in (0, 1, 2):
            seconds, _, n_blocks = found[n_items, n_draws, n_workers]
            row = {
                "items x draws": f"{n_items:,} x {n_draws}",
                "on": f"{n_workers} workers" if n_workers else "threads",
            }
            for step, rate in (("input", rates.door), ("pass", rates.step)):
                row[f"{step}, s"], row[f"{step}, predicted"] = seconds[step], ""
                if n_workers:
                    counted = costs(n_items, n_draws, N_CLUSTERS, n_workers, n_blocks)[step]
                    row[f"{step}, predicted"] = counted.seconds(rate, rates, n_workers)
            yield row | {"search, s": seconds["search"]}


def _bytes(sizes, found):
    for (n_items, n_draws), n_workers, step in product(sizes, (1, 2), ("input", "pass")):
        _, moved, n_blocks = found[n_items, n_draws, n_workers]
        counted = costs(n_items, n_draws, N_CLUSTERS, n_workers, n_blocks)[step]
        row = {"items x draws": f"{n_items:,} x {n_draws}", "workers": n_workers, "step": step}
        yield row | {"MB moved": moved[step] / 1e6, "predicted": counted.moved / 1e6}


def _predicted(rates):
    n_items, n_draws, n_workers = LARGE
    counted = costs(n_items, n_draws, N_CLUSTERS, n_workers, -(-n_items * n_draws // _BLOCK), n_draws)
    for step, rate in (("input", rates.door), ("pass", rates.step)):
        one = counted[step]
        yield {
            "step": step,
            "tasks": one.tasks,
            "GB read": one.labels / 1e9,
            "GB moved": one.moved / 1e9,
            "GB of one worker": one.most / 1e9,
            "seconds": one.seconds(rate, rates, n_workers),
        }
