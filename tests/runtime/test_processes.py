"""Work that uses threads, in processes and threads of other kinds than the main one's."""

import asyncio
import multiprocessing
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from threading import Event
from unittest.mock import patch

import numpy as np
import pytest
from joblib import Parallel, delayed

import posterior_consensus as pc
from posterior_consensus.runtime import executor
from posterior_consensus.sources import stores

N_CALLS = 3
STARTED_ANEW = sorted({"spawn", "forkserver"} & set(multiprocessing.get_all_start_methods()))
"""Ways of starting a process that start Python anew and load the package, which is slow."""


def answer(seed):
    """What the package makes of draws that are many enough for several threads."""
    with patch.object(executor, "n_threads", lambda: 2):
        labels = np.random.default_rng(seed).integers(4, size=(2000, 600))
        labels[:, :300] = np.arange(300) % 3
        draws = pc.as_partition_draws(labels)
        matrix = pc.posterior_similarity_matrix(draws).values
        best = pc.consensus_partition(draws, loss="binder", random_seed=1, progressbar=False)
        ball = pc.credible_ball(draws, best, loss="binder")
        return float(matrix.sum()), best.expected_loss, ball.radius


@pytest.fixture(scope="module")
def expected():
    """The answers of this process, whose threads have run by then, as the work is enough for them."""
    with patch.object(executor, "_pool", None):
        found = [answer(seed) for seed in range(N_CALLS)]
        assert executor._pool is not None
    return found


forks = pytest.mark.skipif(sys.platform != "linux", reason="Windows cannot fork, and libraries of macOS must not")


@pytest.mark.parametrize(
    "method", [pytest.param("fork", marks=forks), *(pytest.param(one, marks=pytest.mark.slow) for one in STARTED_ANEW)]
)
def test_a_process_pool_gives_the_same_answers(method, expected):
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        # Python 3.12 and later warn of any fork of a process with threads; here it is what is tested.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(answer, range(N_CALLS), timeout=300)) == expected


@pytest.mark.slow
def test_loky_gives_the_same_answers(expected):
    assert Parallel(n_jobs=2, backend="loky", timeout=300)(delayed(answer)(seed) for seed in range(N_CALLS)) == expected


def test_threads_give_the_same_answers(expected):
    async def all_answers():
        return await asyncio.gather(*(asyncio.to_thread(answer, seed) for seed in range(N_CALLS)))

    assert asyncio.run(all_answers()) == expected


@forks
def test_a_fork_while_threads_are_busy_starts_threads_of_its_own(expected):
    context = multiprocessing.get_context("fork")
    with ThreadPoolExecutor(1) as busy, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        running = busy.submit(answer, 0)
        with context.Pool(1) as pool:
            assert pool.apply_async(answer, (1,)).get(timeout=300) == expected[1]
        assert running.result() == expected[0]


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_a_thread_reads_can_read_itself():
    held = Event()

    def read():
        with stores.HDF5_LOCK:
            held.set()
            time.sleep(0.2)

    with ThreadPoolExecutor(1) as busy:
        reading = busy.submit(read)
        held.wait()
        if (process := os.fork()) == 0:
            os._exit(0 if stores.HDF5_LOCK.acquire(timeout=10) else 1)
        assert os.waitpid(process, 0)[1] == 0
        reading.result()


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_reads_a_store_that_was_open(tmp_path):
    labels = np.random.default_rng(1).integers(4, size=(50, 600))
    stored = pc.as_partition_draws(labels, store=tmp_path / "store")
    expected = pc.as_partition_draws(labels).labels
    if (process := os.fork()) == 0:
        os._exit(0 if np.array_equal(stored.labels, expected) else 1)
    assert os.waitpid(process, 0)[1] == 0
