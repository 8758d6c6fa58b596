"""What a first call compiles, and when it is compiled again."""

import ast
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core import event
from numba.core.registry import CPUDispatcher
from scipy.special import softmax

import posterior_consensus as pc
from benchmarks.records import records
from posterior_consensus import compilation
from posterior_consensus.kernels import _cache
from posterior_consensus_command import main
from tests.kernels.checks import MODULES, plain

PACKAGE = Path(pc.__file__).parent
GALAXIES = Path(__file__).parents[1] / "posterior_consensus" / "example_data" / "galaxies.nc"

SUMMARIES = """
import posterior_consensus as pc
from tests.test_quick_start import POSTERIORS, called
found = []
for make in POSTERIORS.values():
    pc.summarize(make(), random_seed=1, progressbar=False)
    found.append(called())
print(found)
"""


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
# Kernels, each with the types of its arguments, that a summary calls and none before it in this order.
CALLED = {"galaxies": 24, "record linkage": 17, "wide labels": 0, "soft assignments": 14}
OF_OTHER_LOSSES = {"_set_slopes_here"}
OF_A_LEAST_NUMBER_OF_CLUSTERS = {"_open"}
OF_LARGE_POSTERIORS = {"_joint_sums_by_bits"}
OF_OTHER_KERNELS = {"current", "score_block"}  # only other kernels call them here
COMPILE = "import sys; from posterior_consensus_command import main; sys.exit(main(['compile']))"
COMPILED_BY_COMMAND = """
import warnings
from posterior_consensus.compilation import _PHASES
from tests.test_quick_start import called
warnings.simplefilter("ignore")
for phase in _PHASES:
    phase()
print(called())
"""

EXPECTED_LOSS = """
import numpy as np
from posterior_consensus.kernels import cells, tables
from posterior_consensus.losses import vi
draws = cells.Draws(np.array([[0, 0, 1]], np.uint16), np.array([0, 2]), np.ones(1))
state = cells.tables_of(draws, np.array([0, 1, 1], np.int32), 2)
print(tables.expected_losses(draws, vi().arrays(3), state)[0])
"""


def printed(script, folder=None, **environment):
    """The last line that a process prints; its kernels are those on disk, or in `folder` are compiled anew."""
    own = {} if folder is None else {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)} | own | environment
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()[-1]


def kernels():
    """The kernels that Python can call."""
    return {one for module in MODULES for one in vars(module).values() if isinstance(one, CPUDispatcher)}


def called():
    """Names of the kernels that this process called, with the types of their arguments."""
    return [(kernel.py_func.__name__, str(types)) for kernel in kernels() for types in kernel.signatures]


@pytest.mark.slow
def test_a_summary_compiles_what_it_needs():
    before = set()
    for name, found in zip(POSTERIORS, ast.literal_eval(printed(SUMMARIES)), strict=True):
        new = {*found} - before
        before |= new
        assert len(new) <= CALLED[name], (name, new)
        if name == "galaxies":
            assert "move_chain" in dict(new)
            assert not set(dict(new)) & (OF_OTHER_LOSSES | OF_A_LEAST_NUMBER_OF_CLUSTERS)


@pytest.mark.slow
def test_the_command_compiles_every_kernel():
    names = {kernel.py_func.__name__ for kernel in kernels()}
    assert names - set(dict(ast.literal_eval(printed(COMPILED_BY_COMMAND)))) == OF_LARGE_POSTERIORS | OF_OTHER_KERNELS


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
def test_ctrl_c_ends_the_processes_that_compile(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_NUM_THREADS": "2"}
    streams = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", COMPILE], env=environment, **streams) as process:
        while not list(tmp_path.rglob("*.nbc")):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=600) == 130
        assert process.stderr.read().endswith("interrupted\n")
    with pytest.raises(ProcessLookupError):  # noqa: PT012 (no child is left of its group for long)
        for _ in range(200):
            os.killpg(process.pid, 0)
            time.sleep(0.05)


def test_a_process_that_dies_is_told_of(monkeypatch, capsys):
    monkeypatch.setattr(compilation, "_PHASES", (os.abort, os.getpid))
    assert main(["compile"]) == 1
    assert "compiled when it is called" in capsys.readouterr().err


def test_the_command_says_that_no_kernel_is_kept(monkeypatch, capsys):
    monkeypatch.setattr(compilation, "compile_all", lambda **_: Path("absent").stat())
    assert main(["compile"]) == 1
    assert "absent" in (said := capsys.readouterr().err) and "NUMBA_CACHE_DIR" in said


def edited(folder):
    """Change the kernel of all losses."""
    file = folder / "kernels" / "loss.py"
    text = file.read_text(encoding="utf-8")
    new = text.replace("    value = numerator[0] * top", "    value = 1000.0 + numerator[0] * top")
    assert new != text
    file.write_text(new, encoding="utf-8")


def copied(folder):
    return shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))


def test_kernels_on_disk_are_those_of_all_files_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(event, "register", lambda *_: None)
    folder, found = copied(tmp_path), []
    for change in (lambda _: None, edited):
        change(folder)
        found.append(runpy.run_path(str(folder / "kernels" / "_cache.py"))["SOURCES"])
    assert found[0] == _cache.SOURCES != found[1]
    assert all(_cache.SOURCES in plain(kernel).__qualname__ for kernel in kernels())


@pytest.mark.slow
@pytest.mark.nightly
def test_an_edit_of_a_kernel_in_another_file_is_noticed(tmp_path):
    folder = copied(tmp_path)
    before = float(printed(EXPECTED_LOSS, tmp_path, PYTHONPATH=str(tmp_path)))
    edited(folder)
    assert float(printed(EXPECTED_LOSS, tmp_path, PYTHONPATH=str(tmp_path))) == pytest.approx(1000.0 + before)
