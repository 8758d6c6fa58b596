"""The tutorials are scripts as well, which print what their pages show; `make docs` runs them."""

import ast
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
FUNCTIONS = {"print", "display", "left.imshow", "ax.spines[['top', 'right']].set_visible"}  # give nothing to show
METHODS = {"set", "set_xlabel", "axvline", "legend", "to_html", "savefig", "to_netcdf"}
TUTORIALS = [file for file in sorted(EXAMPLES.glob("*.py")) if "\n# %%" in file.read_text(encoding="utf-8")]


def test_no_value_is_shown_on_the_page_alone():
    """What a notebook shows at the end of a cell a script keeps for itself."""
    shown = {}
    for file in TUTORIALS:
        values = [node.value for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.Expr)]
        called = [ast.unparse(value.func) if isinstance(value, ast.Call) else ast.unparse(value) for value in values]
        shown[file.name] = {name for name in called if name.split(".")[-1] not in METHODS} - FUNCTIONS
    assert len(shown) > 12 and not any(shown.values()), shown


def test_the_hidden_markov_model_on_the_page_is_the_one_that_was_sampled():
    page, script = ((EXAMPLES / name).read_text(encoding="utf-8") for name in ("hidden_markov.py", "sample_nile.py"))
    model = page[page.index("# with pm.Model(") : page.index("#\n# marginal = ")]
    assert "DiscreteMarkovChain" in model and all(line[2:] in script for line in model.splitlines())
