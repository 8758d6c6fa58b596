"""What a first call compiles, and when it is compiled again."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import posterior_consensus

PACKAGE = Path(posterior_consensus.__file__).parent
GALAXIES = Path(__file__).parents[1] / "examples" / "data" / "galaxies.nc"

SUMMARY = """
import json, sys
from numba.core import event

class Names(event.Listener):
    names = []
    def on_start(self, compilation):
        function = compilation.data["dispatcher"].py_func
        self.names.append((function.__module__, function.__name__))
    def on_end(self, compilation):
        pass

event.register("numba:compile", Names())
import posterior_consensus as pc
pc.summarize({path!r}, random_seed=1, progressbar=False)
print(json.dumps(Names.names))
"""
OF_SPARSE_TABLES = {"_sparse", "_score_item_sparse", "_score_block_sparse", "_best_unions_sparse"}
OF_OTHER_LOSSES = {"_any_value", "_linear_form", "_best_of_moves", "_set_slopes_here", "expected_after"}

EXPECTED_LOSS = """
import numpy as np
from posterior_consensus.kernels import cells, tables
from posterior_consensus.losses import vi
draws = cells.Draws(np.array([[0, 0, 1]], np.uint8), np.array([0, 2]), np.ones(1))
print(tables.expected_loss(draws, vi().arrays(3), np.array([0, 1, 1], np.int32), 2))
"""


def printed(script, tmp_path, **environment):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} | environment
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def compiled_by_a_first_summary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    first, second = (json.loads(printed(SUMMARY.format(path=str(GALAXIES)), folder)) for _ in range(2))
    assert second == []
    return first


def test_a_first_summary_compiles_no_more_than_it_did(compiled_by_a_first_summary):
    # What numba compiles of its own for them differs between versions of Python and numba.
    own = [name for module, name in compiled_by_a_first_summary if module.startswith("posterior_consensus")]
    assert len(own) <= 74


def test_a_first_summary_compiles_nothing_that_it_does_not_need(compiled_by_a_first_summary):
    names = {name for _, name in compiled_by_a_first_summary}
    assert "settle" in names
    assert not names & (OF_SPARSE_TABLES | OF_OTHER_LOSSES)


def test_an_edit_of_a_kernel_in_another_file_is_noticed(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    before = float(printed(EXPECTED_LOSS, tmp_path, PYTHONPATH=str(tmp_path)))
    file = tmp_path / PACKAGE.name / "kernels" / "loss.py"
    text = file.read_text()
    edited = text.replace("    value = numerator[0] * top", "    value = 1000.0 + numerator[0] * top")
    assert edited != text
    file.write_text(edited)
    assert float(printed(EXPECTED_LOSS, tmp_path, PYTHONPATH=str(tmp_path))) == pytest.approx(1000.0 + before)
