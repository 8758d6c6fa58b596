"""Work on the workers of a dask cluster: the answers of one machine, also where a worker is lost meanwhile."""

import os
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.ensemble.dask_labels import DaskLabels
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.runtime import cluster, executor, memory
from posterior_consensus.runtime.executor import Executor
from posterior_consensus.search import large
from tests.catalogue.posteriors import noisy_draws

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # A worker that is killed leaves what it had open to be closed by whoever comes across it.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

N_DRAWS, N_ITEMS = 60, 600


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.slow)])
def client(request):
    """A client of two workers of one thread each, in this process or in two of their own."""
    patience = {
        "distributed.comm.timeouts.connect": "10s",  # else all wait half a minute for a worker that was killed
        "distributed.deploy.lost-worker-timeout": "10m",  # for another in its place: a busy machine is slow to start it
    }
    with warnings.catch_warnings(), dask.config.set(patience):
        warnings.simplefilter("ignore")
        # By TCP threads too get copies of what they are sent.
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "protocol": "tcp://"}
        workers = distributed.LocalCluster(processes=request.param == "processes", **options)
        with workers, distributed.Client(workers, timeout="10m") as client:
            yield client


@pytest.fixture
def sends_all(monkeypatch):
    """Let the smallest work be worth sending."""
    monkeypatch.setattr(memory, "LABELS_WORTH_SENDING", 0)


@pytest.fixture(scope="module")
def labels():
    return noisy_draws(np.random.default_rng(1), N_DRAWS, N_ITEMS, 5, 0.3).reshape(2, -1, N_ITEMS)


def persisted(client, labels):
    array = client.persist(da.from_array(labels, chunks=(1, 10, -1)))
    distributed.wait(array)
    return array


def found_by(loss):
    return lambda draws: [pc.consensus_partition(draws, loss=loss, n_starts=2, random_seed=1, progressbar=False)]


def about_a_partition(draws):
    partition = np.arange(N_ITEMS) % 5
    ball, items = pc.credible_ball(draws, partition), pc.item_uncertainty(draws, partition)
    return [
        pc.expected_loss(draws, [partition, partition // 2], loss="binder"),
        ball,
        items,
        pc.diagnose(draws, partition),
    ]


def particles(draws):
    return [pc.particles(draws, 2, n_starts=2, random_seed=1, progressbar=False)]


@pytest.mark.parametrize(
    "answers",
    [
        found_by("vi"),
        pytest.param(found_by("nvi"), marks=pytest.mark.slow),
        pytest.param(particles, marks=pytest.mark.slow),
        about_a_partition,
    ],
)
def test_answers_are_those_of_one_machine(client, labels, answers, monkeypatch):
    here = answers(pc.as_partition_draws(labels))
    monkeypatch.setattr(memory, "LABELS_WORTH_SENDING", 0)
    draws = pc.as_partition_draws(persisted(client, labels))
    assert isinstance(draws.backend, DaskLabels)
    for pair in zip(here, answers(draws), strict=True):
        one, other = (one if isinstance(one, xr.Dataset) else one.to_dataset() for one in pair)
        assert one.assign_attrs(info=None).identical(other.assign_attrs(info=None)), pair  # which has seconds


@pytest.mark.usefixtures("sends_all")
def test_labels_of_other_types_are_the_same(client, labels):
    for dtype in (np.float32, np.uint8):
        draws = pc.as_partition_draws(persisted(client, labels.astype(dtype)))
        np.testing.assert_array_equal(draws.labels, pc.as_partition_draws(labels).labels)


@pytest.mark.usefixtures("sends_all")
def test_workers_read_a_store_themselves(client, labels, tmp_path):
    stored = pc.as_partition_draws(labels, store=tmp_path / "labels.nc")
    answers = found_by("vi")
    (here,), (there,) = answers(pc.as_partition_draws(labels)), answers(stored)
    assert here.labels.identical(there.labels) and here.expected_loss == there.expected_loss
    with xr.open_dataset(tmp_path / "labels.nc", engine="h5netcdf", chunks={}) as file:
        draws = pc.as_partition_draws(file["labels"])
        assert isinstance(draws.backend, DaskLabels)
        np.testing.assert_array_equal(draws.labels, stored.labels)


def test_a_search_in_blocks_is_that_of_one_machine(client, labels, monkeypatch):
    monkeypatch.setattr(large, "_ITEMS", 100)
    here = pc.as_partition_draws(labels)
    best = pc.consensus_partition(here, random_seed=1, progressbar=False)
    assert best.info.sample == [100, N_DRAWS]
    monkeypatch.setattr(memory, "LABELS_WORTH_SENDING", 0)
    there = pc.as_partition_draws(persisted(client, labels))
    read = DaskLabels.values.fget

    def values(self):
        assert self.n_draws < N_DRAWS, "all labels were asked for"
        return read(self)

    monkeypatch.setattr(DaskLabels, "values", property(values))
    other = pc.consensus_partition(there, random_seed=1, progressbar=False)
    assert best.labels.identical(other.labels) and best.expected_loss == other.expected_loss
    ball, other = (pc.credible_ball(draws, best.labels).to_dataset() for draws in (here, there))
    assert ball.identical(other)
    diagnosis, other = (pc.diagnose(draws, best).to_dataset() for draws in (here, there))
    assert diagnosis.identical(other)


def test_a_summary_is_that_of_one_machine(client, labels, monkeypatch):
    one = pc.summarize(labels[:, :, :300], random_seed=1, progressbar=False)
    monkeypatch.setattr(memory, "LABELS_WORTH_SENDING", 0)
    other = pc.summarize(persisted(client, labels[:, :, :300]), random_seed=1, progressbar=False)
    assert one.findings() == other.findings()
    np.testing.assert_array_equal(one.modes.partitions, other.modes.partitions)


def test_small_work_stays_here(client, labels):
    assert isinstance(pc.as_partition_draws(persisted(client, labels)).backend, ArrayLabels)
    with Executor(-1, None, labels.size) as calls:
        assert calls._workers is None
    assert cluster.client_for(memory.LABELS_WORTH_SENDING) is client
    assert client.submit(cluster.client_for, 1e12).result() is None  # a call on a worker has that worker


def until_told(folder):
    """Say which process this is, and wait for the word to go on."""
    (folder / str(os.getpid())).touch()
    while not (folder / "go").exists():
        time.sleep(0.01)


class Slow:
    """Something whose methods take until they are told to end, as a search does."""

    def __init__(self, stop):
        self.stop = stop
        self.data = np.arange(100_000)

    def wait(self, number):
        while not self.stop[0]:
            time.sleep(0.01)
        return number, int(self.data.sum()), executor.n_threads()

    def work(self, number, folder):
        until_told(folder)
        return number, int(self.data.sum())

    def fail(self, number):
        raise ArithmeticError(f"number {number}")


@pytest.mark.usefixtures("sends_all", "client")
def test_the_time_limit_ends_calls_on_workers():
    with Executor(-1, 0.2, 1) as calls:
        found = calls.results(Slow(calls.stop).wait, [(number,) for number in range(5)])
        assert found == [(number, sum(range(100_000)), 1) for number in range(5)]
        assert calls.stopped == "seconds"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals to threads")
@pytest.mark.usefixtures("sends_all", "client")
def test_ctrl_c_ends_calls_on_workers(monkeypatch):
    waits, completed = threading.Event(), cluster.Workers._completed

    def press():
        waits.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def completed_with_word(self, futures, seconds):
        waits.set()
        return completed(self, futures, seconds)

    monkeypatch.setattr(cluster.Workers, "_completed", completed_with_word)
    with Executor(-1, None, 1) as calls:
        threading.Thread(target=press, daemon=True).start()
        assert len(calls.results(Slow(calls.stop).wait, [(number,) for number in range(3)])) == 3
        assert calls.stopped == "interrupted"


@pytest.mark.usefixtures("sends_all", "client")
def test_an_error_on_a_worker_is_raised_here():
    with Executor(-1, None, 1) as calls, pytest.raises(ArithmeticError, match="number"):
        calls.results(Slow(calls.stop).fail, [(number,) for number in range(3)])


@pytest.fixture
def killing(client, tmp_path):
    """Kill so many workers once all are at a call, which then go on; at the end their nannies have new ones."""
    pids, killed = client.run(os.getpid), []

    def kill(n_killed):
        while not all((tmp_path / str(pid)).exists() for pid in pids.values()):
            time.sleep(0.01)
        for pid in list(pids.values())[:n_killed]:
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has only the latter, which kills there
        (tmp_path / "go").touch()

    def start(n_killed):
        killed.extend(list(pids)[:n_killed])
        threading.Thread(target=kill, args=[n_killed], daemon=True).start()

    yield start
    while len(workers := set(client.scheduler_info()["workers"])) < 2 or workers & set(killed):
        time.sleep(0.05)


in_processes = pytest.mark.parametrize(
    "client", [pytest.param("processes", marks=pytest.mark.slow)], indirect=True, scope="module"
)


@in_processes
@pytest.mark.usefixtures("sends_all")
@pytest.mark.parametrize("n_killed", [1, 2])
def test_a_search_loses_nothing_with_a_worker(client, killing, n_killed, tmp_path):
    """With all workers goes what they were sent: it is sent anew."""
    with Executor(-1, None, 1) as calls:
        killing(n_killed)
        found = calls.results(Slow(calls.stop).work, [(number, tmp_path) for number in range(16)])
    assert found == [(number, sum(range(100_000))) for number in range(16)]


def slow_sum(labels, items, folder):
    until_told(folder)
    return labels.sum(axis=1, dtype=np.int64)


@in_processes
@pytest.mark.usefixtures("sends_all")
@pytest.mark.parametrize("how", ["map", "sum"])
def test_blocks_of_a_lost_worker_are_made_again(client, killing, labels, how, tmp_path):
    draws = pc.as_partition_draws(persisted(client, labels))
    here = pc.as_partition_draws(labels).backend
    distributed.wait(draws.backend._parts)
    blocks = [slice(first, first + 40) for first in range(0, N_ITEMS, 40)]
    killing(1)
    if how == "sum":
        total = draws.backend.sum_blocks(slow_sum, tmp_path, blocks=blocks)
    else:
        found = list(draws.backend.map_blocks(slow_sum, tmp_path, blocks=blocks))
        assert [items for items, _ in found] == blocks
        total = sum(one for _, one in found)
    np.testing.assert_array_equal(total, here.array.sum(axis=1))
    np.testing.assert_array_equal(draws.labels, here.array)
