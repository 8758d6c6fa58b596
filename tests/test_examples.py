"""The tutorials are notebooks, which need the package and no file beside them; `make docs` runs all of them."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TUTORIALS = {
    file.stem: file.read_text(encoding="utf-8")
    for file in sorted(EXAMPLES.glob("*.py"))
    if "\n# %%" in file.read_text(encoding="utf-8")
}
PACKAGES = {"clustering_runs": ("scanpy", "igraph")}  # that the documentation alone needs
DRAWING = {"legend", "set", "set_xlabel", "set_ylabel", "set_title", "axvline", "axhline", "text", "imshow", "scatter"}


def test_a_tutorial_imports_no_file_beside_it_and_reads_none():
    assert len(TUTORIALS) > 12
    beside = {file.stem for file in EXAMPLES.glob("*.py")}
    failures = []
    for name, text in TUTORIALS.items():
        for node in ast.walk(ast.parse(text)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) else []
            failures += [(name, module) for module in modules if module in beside]
            failures += [(name, "__file__")] if isinstance(node, ast.Name) and node.id == "__file__" else []
    assert not failures


def test_no_cell_ends_with_what_a_drawing_returns():
    """A notebook would show it: ``Text(0.5, 0, 'years')``."""
    failures = []
    for name, text in TUTORIALS.items():
        for cell in text.split("\n# %%"):
            code = ast.parse(cell.partition("\n")[2]).body
            if code and isinstance(code[-1], ast.Expr) and isinstance(code[-1].value, ast.Call):
                called = ast.unparse(code[-1].value.func).rpartition(".")[2]
                failures += [(name, called)] if called in DRAWING else []
    assert not failures


@pytest.mark.slow
@pytest.mark.nightly  # `make docs` runs all tutorials, with the other ArviZ
@pytest.mark.parametrize("name", ["clustering_runs", "hidden_markov", "label_switching", "scored_pairs"])
def test_a_tutorial_runs_as_a_script_in_an_empty_folder(name, tmp_path):
    for package in PACKAGES.get(name, ()):
        pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, "-"],
        input=TUTORIALS[name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_downloaded_notebook_runs_in_an_empty_folder(tmp_path, monkeypatch):
    """With what `make docs` needs; the page of a tutorial links its notebook."""
    pytest.importorskip("jupytext")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the notebook has its own, which shows pictures
    import notebooks

    file = tmp_path / "folder" / "reporting.ipynb"
    file.parent.mkdir()
    notebooks.write(EXAMPLES / "reporting.py", file)
    notebook = nbformat.read(file, 4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": file.parent}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert {"execute_result", "stream", "display_data"} >= {output.output_type for output in shown}
    assert any("image/png" in output.get("data", {}) for output in shown)
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "(https://" in words and ".md" not in words  # other pages are not there


def test_the_models_on_the_pages_are_those_that_were_sampled():
    page, script = TUTORIALS["hidden_markov"], (EXAMPLES / "sample_nile.py").read_text(encoding="utf-8")
    model = page[page.index("# with pm.Model(") : page.index("#\n# marginal = ")]
    assert "DiscreteMarkovChain" in model and all(line[2:] in script for line in model.splitlines())
    page, script = TUTORIALS["label_switching"], (EXAMPLES / "sample_wine.py").read_text(encoding="utf-8")
    script = script.replace("N_COMPONENTS", "3").replace("n_features", "3")
    model = page[page.index("with pm.Model(") : page.index("soft = ")]
    assert "LKJCholeskyCov" in model and all(line in script for line in model.splitlines())
