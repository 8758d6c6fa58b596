"""Independent work on threads: blocks within calls, errors, and calls that could go to another process."""

import os
import pickle
import sys
import time
from threading import Event, Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import posterior_consensus as pc
from posterior_consensus.answers import compare
from posterior_consensus.losses.partition_losses import PAIR_LOSSES
from posterior_consensus.problems.problem import Problem
from posterior_consensus.runtime import executor
from posterior_consensus.runtime.executor import Executor, one_blas_thread
from posterior_consensus.search.item_terms import OnItemTerms
from posterior_consensus.search.local_search import SMALL, OnDraws, OnDrawsNonlinear, OnPairs, Uniforms
from tests.catalogue.posteriors import noisy_draws


def fill(first, last, out):
    time.sleep(0.001)
    out[first:last] += 1


def filled(size):
    out = np.zeros(size)
    executor.in_blocks(fill, 0, size, out, work=2**40)
    return int(out.sum())


@pytest.mark.parametrize("n_jobs", [0, 1, -1])
def test_calls_with_loops_of_their_own_do_not_wait_for_each_other(n_jobs, monkeypatch):
    monkeypatch.setattr(executor, "n_threads", lambda: 2)
    monkeypatch.setattr(executor, "_pool", None)
    with Executor(n_jobs, None) as calls:
        assert calls.results(filled, [(size,) for size in range(2, 20)]) == list(range(2, 20))
    assert executor._pool._max_workers == 2


def served(size):
    """Sums of sizes, by calls within calls."""
    with Executor(-1, None) as calls:
        return sum(calls.results(filled, [(k,) for k in range(size)]))


def test_calls_from_the_threads_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(executor, "n_threads", lambda: 2)
    monkeypatch.setattr(executor, "_pool", None)
    sizes = [(size,) for size in range(2, 8)]
    assert list(executor.in_order(served, sizes)) == [1, 3, 6, 10, 15, 21]
    with Executor(-1, None) as calls:
        assert calls.results(served, sizes) == [1, 3, 6, 10, 15, 21]


def wait_or_fail(number, stop):
    if number == 1:
        raise ArithmeticError
    while not stop[0]:
        time.sleep(0.001)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_an_error_ends_the_other_calls(n_jobs, monkeypatch):
    monkeypatch.setattr(executor, "n_threads", lambda: 2)
    monkeypatch.setattr(executor, "_pool", None)
    with Executor(n_jobs, None) as calls, pytest.raises(ArithmeticError):
        calls.results(wait_or_fail, [(number, calls.stop) for number in range(8)])


LOCAL_SEARCHES = {
    "draws": (OnDraws, pc.vi()),
    "nonlinear": (OnDrawsNonlinear, pc.LOSSES["nvi"]()),
    "pairs": (OnPairs, pc.binder()),
    "terms": (OnItemTerms, PAIR_LOSSES["vi_lower_bound"]()),
}


@pytest.mark.parametrize("kind", list(LOCAL_SEARCHES))
def test_the_calls_of_a_search_could_go_to_another_process(kind):
    draws = pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 60, 20, 4, 0.5))
    search, loss = LOCAL_SEARCHES[kind]
    local = search(Problem(draws, loss), np.zeros(1, np.uint8))
    rng = np.random.default_rng(2)
    call = rng.permutation(20), Uniforms(rng.random(SMALL), *rng.random(2)), False
    here, there = local.begin(*call), pickle.loads(pickle.dumps(local.begin))(*call)
    np.testing.assert_array_equal(here.labels, there.labels)
    np.testing.assert_array_equal(here.tally, there.tally)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_posteriors_are_compared_on_one_thread_of_blas(monkeypatch):
    """Products of a few blocks, one for each item, are not worth the threads that they would wake."""
    draws, within = pc.as_partition_draws(noisy_draws(np.random.default_rng(1), 400, 20, 4, 0.5)), []
    energy = compare.half_energy
    monkeypatch.setattr(compare, "half_energy", lambda *given: within.extend(blas_threads()) or energy(*given))
    with threadpool_limits(2, user_api="blas"):
        pc.compare_posteriors(draws, draws, random_seed=1, progressbar=False)
        assert set(within) == {1} and max(blas_threads()) == 2


def test_calls_that_overlap_give_blas_its_threads_back():
    first, second, within = Event(), Event(), []

    def call(begins, waits_for):
        with one_blas_thread():
            begins.set()
            waits_for.wait(100)
            within.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        ends = Event()
        calls = [Thread(target=call, args=(first, second)), Thread(target=call, args=(second, ends))]
        calls[0].start()
        first.wait(100)
        calls[1].start()
        calls[0].join()  # ends while the other goes on
        assert set(blas_threads()) == {1}
        ends.set()
        calls[1].join()
        assert blas_threads() == before
    assert within == [[1] * len(before)] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="Windows cannot fork, and libraries of macOS must not")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_the_threads_of_blas_of_before():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        begins, ends = Event(), Event()

        def call():
            with one_blas_thread():
                begins.set()
                ends.wait(100)

        thread = Thread(target=call)
        thread.start()
        begins.wait(100)
        process = os.fork()
        if not process:
            os._exit(blas_threads() != before)
        ends.set()
        thread.join()
        assert os.waitpid(process, 0)[1] == 0
