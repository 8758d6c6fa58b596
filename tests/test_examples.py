"""The tutorials are scripts as well, which run from any folder and print what their pages show."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
TUTORIALS = [file for file in sorted(EXAMPLES.glob("*.py")) if "\n# %%" in file.read_text(encoding="utf-8")]
PRINTED = {
    "numpyro_posterior": ["Summary: 82 items (galaxy)", "VI between the two: 0."],
    "not_converged": ["ConsensusPartition", "Diagnosis", "The chains disagree"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_tutorials_print_what_they_show(name, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in PRINTED[name]), done.stdout


@pytest.mark.parametrize("file", TUTORIALS, ids=lambda file: file.stem)
def test_no_value_is_shown_on_the_page_alone(file):
    """What a notebook shows at the end of a cell a script keeps for itself."""
    values = [node.value for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.Expr)]
    assert all(isinstance(value, ast.Call) for value in values)
    called = {ast.unparse(value.func) for value in values}
    methods = {name for name in called if name.split(".")[-1] in ("set", "set_xlabel", "axvline", "legend", "to_html")}
    assert called - methods <= {"print", "display", "left.imshow", "ax.spines[['top', 'right']].set_visible"}
