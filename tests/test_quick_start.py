"""What a first call compiles, and when it is compiled again."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numba.core import event
from numba.core.registry import CPUDispatcher
from scipy.special import softmax

import posterior_consensus as pc
from benchmarks.records import records
from posterior_consensus.kernels import _jit, ahead, tables
from tests.kernels.checks import MODULES

PACKAGE = Path(pc.__file__).parent
GALAXIES = Path(__file__).parents[1] / "examples" / "data" / "galaxies.nc"

COMPILING = """
import json
import numpy as np
from numba.core import event

class Names(event.Listener):
    names = []
    def on_start(self, compilation):
        function = compilation.data["dispatcher"].py_func
        if function.__module__.startswith("posterior_consensus"):
            self.names.append(function.__name__)
    def on_end(self, compilation):
        pass

event.register("numba:compile", Names())
import posterior_consensus as pc
{call}
print(json.dumps(Names.names))
"""
SUMMARY = (
    "from tests.test_quick_start import POSTERIORS; "
    "pc.summarize(POSTERIORS[{name!r}](), random_seed=1, progressbar=False)"
)


def wide_labels():
    """Draws of 300 clusters."""
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.arange(1500) % 300)
    return np.array([np.where(rng.random(1500) < 0.1, rng.integers(300, size=1500), truth) for _ in range(40)])


def soft_assignments():
    """Allocation probabilities of three clusters."""
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=60)
    odds = 4.0 * np.eye(3)[truth] + rng.normal(size=(200, 60, 3))
    return pc.as_allocation_probabilities(softmax(odds, axis=-1))


POSTERIORS = {
    "galaxies": lambda: str(GALAXIES),
    "record linkage": lambda: records(600, 60),
    "wide labels": wide_labels,
    "soft assignments": soft_assignments,
}
# Kernels that a summary finds neither compiled nor on disk, one after the other in an environment.
COMPILED = {"galaxies": 19, "record linkage": 20, "wide labels": 0, "soft assignments": 10}
OF_OTHER_LOSSES = {"_set_slopes_here"}
OF_A_LEAST_NUMBER_OF_CLUSTERS = {"_open"}

EXPECTED_LOSS = """
import numpy as np
from posterior_consensus.kernels import cells, tables
from posterior_consensus.losses import vi
draws = cells.Draws(np.array([[0, 0, 1]], np.uint16), np.array([0, 2]), np.ones(1))
state = cells.tables_of(draws, np.array([0, 1, 1], np.int32), 2)
print(tables.expected_losses(draws, vi().arrays(3), state)[0])
"""


def printed(script, tmp_path, **environment):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} | environment
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()[-1]


def on_disk(folder):
    """How often each kernel is in the cache, by its name."""
    return Counter(file.name.split("-")[0].split(".")[-1] for file in folder.rglob("*.nbc"))


@pytest.mark.slow
def test_a_summary_compiles_no_more_than_it_needs_and_side_by_side(tmp_path):
    environment, before = {"PYTHONPATH": str(PACKAGE.parent), "NUMBA_NUM_THREADS": "2"}, Counter()
    for name in POSTERIORS:
        in_this_process = json.loads(printed(COMPILING.format(call=SUMMARY.format(name=name)), tmp_path, **environment))
        after = on_disk(tmp_path)
        new, before = after - before, after
        assert new.total() <= COMPILED[name], name
        # Those that come alone: at the door, and for a number of clusters.
        assert {kernel for kernel in in_this_process if kernel in new} <= {"canonicalise", "_open"}, name
        if name == "galaxies":
            assert "score_block" in new
            assert not set(new) & (OF_OTHER_LOSSES | OF_A_LEAST_NUMBER_OF_CLUSTERS)


def test_each_kernel_that_python_calls_is_in_a_set():
    own = {
        kernel
        for module in MODULES
        for kernel in vars(module).values()
        if isinstance(kernel, CPUDispatcher) and not kernel.targetoptions.get("no_cpython_wrapper")
    }
    assert own == {kernel for kernel, _ in ahead.everything()}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
def test_ctrl_c_ends_the_processes_that_compile(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_NUM_THREADS": "2"}
    compiling = "import sys; from posterior_consensus.cli import main; sys.exit(main(['compile']))"
    streams = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", compiling], env=environment, **streams) as process:
        while not list(tmp_path.rglob("*.nbc")):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=600) == 130
        assert process.stderr.read().endswith("interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # no child is left of its group


@pytest.mark.parametrize("n_dead", [1, 2])
def test_compilation_ends_though_processes_die(n_dead, monkeypatch):
    start, started = ahead._start, []

    def started_or_dead():
        started.append(start())
        if len(started) <= n_dead:
            started[-1].kill()
        return started[-1]

    monkeypatch.setattr(ahead, "n_threads", lambda: 2)
    monkeypatch.setattr(ahead, "_start", started_or_dead)
    ahead.side_by_side({tables.expected_losses: [], tables.cluster_terms: []}, progressbar=False)
    assert [child.returncode is None for child in started] == [False, False]  # no child is left behind


def test_kernels_are_compiled_beforehand_once_where_python_can_be_started_again(monkeypatch):
    started = []
    monkeypatch.setattr(ahead, "side_by_side", lambda missing, progressbar: started.append(missing))
    monkeypatch.setattr(ahead, "not_ready", dict)
    monkeypatch.setattr(ahead, "announce", lambda _: None)
    for n_threads, executable, jobs in (
        (2, "", "abc"),
        (2, "/opt/it", "abc"),
        (1, "python", "abc"),
        (2, "python", "a"),
    ):
        monkeypatch.setattr(ahead, "n_threads", lambda n_threads=n_threads: n_threads)
        monkeypatch.setattr(sys, "executable", executable)
        ahead.prepare((lambda jobs=jobs: enumerate(jobs),), progressbar=False)
    assert not started
    two_kernels = (lambda: enumerate("ab"),)
    for _ in range(2):
        ahead.prepare(two_kernels, progressbar=False)
    assert started == [{0: "a", 1: "b"}]


def edited(folder):
    """Change the kernel of all losses."""
    file = folder / "kernels" / "loss.py"
    text = file.read_text()
    new = text.replace("    value = numerator[0] * top", "    value = 1000.0 + numerator[0] * top")
    assert new != text
    file.write_text(new)


def copied(folder):
    return shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))


def test_kernels_on_disk_are_those_of_all_files_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(event, "register", lambda *_: None)
    folder, found = copied(tmp_path), []
    for change in (lambda _: None, edited):
        change(folder)
        found.append(runpy.run_path(str(folder / "kernels" / "_jit.py"))["_SOURCES"])
    assert found[0] == _jit._SOURCES != found[1]
    assert tables.expected_losses._cache._cache_file._version.endswith(f" {_jit._SOURCES}")


@pytest.mark.slow
def test_an_edit_of_a_kernel_in_another_file_is_noticed(tmp_path):
    folder = copied(tmp_path)
    before = float(printed(EXPECTED_LOSS, tmp_path, PYTHONPATH=str(tmp_path)))
    edited(folder)
    assert float(printed(EXPECTED_LOSS, tmp_path, PYTHONPATH=str(tmp_path))) == pytest.approx(1000.0 + before)
