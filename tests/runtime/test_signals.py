"""Ctrl-C at any moment: KeyboardInterrupt, or a result with a warning that it was interrupted; no process crashes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CALLS = {
    "binder": 'pc.consensus_partition(draws, loss="binder", **quiet)',
    "binder_of_few": 'pc.consensus_partition(few, loss="binder", **quiet)',
    "vi": "pc.consensus_partition(few, **quiet)",
    "information_distance": 'pc.consensus_partition(few, loss="information_distance", **quiet)',
    "exact": 'pc.consensus_partition(few, loss="binder", method="exact")',
    "loss_path": "pc.loss_path(few, values=[0.8, 1.0], n_starts=2, **quiet)",
    "loss_by_n_clusters": "pc.loss_by_n_clusters(few, n_clusters=[2, 3], n_starts=2, **quiet)",
    "summarize": "pc.summarize(few, **quiet)",
}
SCRIPT = """
import collections, json, signal, time, warnings
import numpy as np
import posterior_consensus as pc

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
draws = np.where(rng.random((600, 60)) < 0.35, rng.integers(5, size=(600, 60)), np.arange(60) % 5)
few, quiet = draws[:80, :20], dict(random_seed=1, progressbar=False)
call = lambda: {call}
call()
began = time.perf_counter()
call()
seconds = time.perf_counter() - began
pressed = []

def press(*given):
    pressed.append(True)
    signal.default_int_handler(*given)

signal.signal(signal.SIGALRM, press)
ends = collections.Counter()
for _ in range(100):
    pressed.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + 0.9 * seconds * rng.random())
            found = call()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            ends["KeyboardInterrupt"] += 1
        else:
            stopped = getattr(found, "stopped", "") or any("interrupted" in str(one.message) for one in said)
            ends["whole" if not pressed else "stopped" if stopped else "silent"] += 1
print(json.dumps(ends))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no timer that sends signals")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_moment(name):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-X", "faulthandler", "-c", SCRIPT.replace("{call}", CALLS[name])]
    process = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert process.returncode == 0, process.stderr
    ends = json.loads(process.stdout)
    assert sum(ends.values()) == 100 and ends.get("whole", 0) < 100, ends
    assert ends.get("silent", 0) < 3, ends  # Python ignores an error where it disposes of an object


IMPORTS = """
import os, signal, sys

class Press:  # Ctrl-C while this module is imported, within code that makes another error of a KeyboardInterrupt
    def find_spec(self, name, *_):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            except BaseException:
                raise RuntimeError

sys.meta_path.insert(0, Press())
sys.argv = ["posterior-consensus", "z.npy"]
from posterior_consensus_command import main
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
@pytest.mark.parametrize(
    "module",
    [
        "posterior_consensus.runtime.names",
        "pandas",
        pytest.param("posterior_consensus.summary", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_while_the_command_is_imported(module, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", IMPORTS.replace("{module!r}", repr(module))]
    np.save(tmp_path / "z.npy", np.zeros((4, 3), int))
    process = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (process.returncode, process.stderr) == (130, "interrupted\n")
