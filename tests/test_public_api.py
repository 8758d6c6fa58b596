"""The public names: light to import, documented, each with an example."""

import inspect
import pydoc
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

from numpydoc.validate import validate

import posterior_consensus as pc
from posterior_consensus.results.work import Info
from tests import parameters
from tests.catalogue.functions import FIGURES, MODULES, PUBLIC, RECORDS, TOP

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HEAVY = {"numpy", "xarray", "numba", "scipy", "sklearn", "pandas", "dask", "highspy"}
HEAVY |= {"arviz", "arviz_stats", "matplotlib", "pymc"}
FOUR_RESULTS = """
import sys
import posterior_consensus as pc
draws = pc.as_partition_draws([[0, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1]])
print(pc.consensus_partition(draws), pc.credible_ball(draws, [0, 0, 1]), pc.posterior_similarity_matrix(draws))
print("loaded:", *{"arviz", "pymc", "distributed", "matplotlib.pyplot", "highspy"} & set(sys.modules))
"""


def text_of(*path):
    return DOCS.joinpath(*path).read_text(encoding="utf-8")


def last_line(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].strip()


def test_import_alone_loads_nothing_heavy():
    assert last_line(f"import sys, posterior_consensus; print('loaded:', *{HEAVY!r} & set(sys.modules))") == "loaded:"


def test_main_job_imports_no_optional_package():
    assert last_line(FOUR_RESULTS) == "loaded:"


def test_api_index_has_every_public_name_once():
    entries = re.findall(r"^(?:   ([\w.]+)|\.\. py:data:: ([\w.]+))$", text_of("api", "index.md"), re.MULTILINE)
    assert sorted(name or data for name, data in entries) == sorted(PUBLIC)


def test_page_of_work_has_every_record_of_work_once():
    names = re.findall(r"^\.\. autoclass:: posterior_consensus\.([\w.]+)$", text_of("api", "work.md"), re.MULTILINE)
    records = [attrgetter(name)(pc) for name in names]
    known = {Info}
    while more := {kind for parent in known for kind in parent.__subclasses__()} - known:
        known |= more
    assert len(set(records)) == len(records)
    assert set(records) == {kind for kind in known if kind.__module__.startswith("posterior_consensus.")}


def test_every_public_name_is_in_an_example_or_on_a_page_beside_the_reference():
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), DOCS / "api" / "work.md", *(ROOT / "examples").glob("*.py")]
    pages += [page for folder in ("background", "how_to") for page in (DOCS / folder).glob("*.md")]
    code = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        code += [text] if page.suffix == ".py" else re.findall(r"^```.*?^```|`[^`\n]+`", text, re.MULTILINE | re.DOTALL)
    shown = set(re.findall(r"\w+", "\n".join(code)))
    assert not [name for name in PUBLIC if name.rpartition(".")[2] not in shown]


def test_help_reference_and_the_page_for_programs_begin_with_the_ten_functions_of_an_analysis():
    listed = re.findall(r"^(\w+)  +\w", pc.__doc__, re.MULTILINE)
    first = re.search(r"autosummary::\n(?:   :\w+:.*\n)+\n((?:   \w+\n)+)", text_of("api", "index.md"))[1]
    assert len(listed) == 10 and set(listed) == set(first.split()) <= set(TOP)
    section = re.search(r"^## Ten calls.*?(?=^## )", text_of("llms.txt"), re.MULTILINE | re.DOTALL)[0]
    assert set(
        re.findall(r"pc\.(\w+)\(", "".join(re.findall(r"^```python\n.*?^```", section, re.MULTILINE | re.DOTALL)))
    ) == {*listed, "partial_partition", "plot_psm"}
    assert set(re.findall(r"`(\w+)`", pc.__doc__)) == {*MODULES, "plot_psm", "plot_"}


def test_modules_are_listed_when_a_name_is_completed():
    assert set(MODULES) <= set(dir(pc))
    for module in MODULES:
        assert set(getattr(pc, module).__all__) <= set(dir(getattr(pc, module)))


# Sections in order, each with a description: summary, parameters, returns, see also, examples.
CHECKS = {"GL07", "GL08", "SS01", "SS05", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "SA01", "EX01"}


def test_every_name_is_documented_and_every_function_as_numpydoc_asks():
    failures = [name for name, value in PUBLIC.items() if callable(value) and not inspect.getdoc(value)]
    for name, value in PUBLIC.items():
        if inspect.isfunction(value):
            errors = validate(f"posterior_consensus.{name}")["errors"]
            failures += [(name, *error) for error in errors if error[0] in CHECKS]
    assert not failures


def test_parameters_that_many_functions_have_are_declared_once():
    """`python -m tests.parameters` writes them."""
    found = {(name, parameter): (function, lines) for name, function, parameter, lines in parameters.described()}
    assert not [key for key, (_, lines) in found.items() if lines[0] != parameters.wanted(key[1], lines[2])]
    for name, function in ({key: one for key, one in PUBLIC.items() if inspect.isfunction(one)} | FIGURES).items():
        own, known = parameters.OWN.get(name, set()), inspect.signature(function).parameters
        wanted = (parameters.SHARED.keys() & known.keys()) - own
        wanted = wanted - {"figsize"} | {"figsize, ax"} if "ax" in known else wanted
        assert own <= known.keys() and all((name, one) in found for one in wanted)
    hints = {}
    for (of, names), (function, _) in found.items():
        for name in names.split(", "):
            parameter = inspect.signature(function).parameters[name]
            assert parameter.default == parameters.SHARED[names].default
            hints.setdefault((name, of in FIGURES), set()).add(str(parameter.annotation))
    assert not {name: types for (name, of_figure), types in hints.items() if len(types) > 1 and not of_figure}


def test_help_names_the_type_of_a_seed():
    shown = "\n".join(pydoc.plaintext.document(value) for value in PUBLIC.values() if callable(value))
    assert {*re.findall(r"random_seed: '?(.+?)'?(?: = None)?[,)]", shown)} == {"RandomSeed"}


def test_every_figure_has_an_example_and_a_card_in_the_gallery():
    """The build of the documentation runs the examples, as it shows them."""
    own = [one.plot for one in RECORDS if "plot" in vars(one)]  # of summaries
    figures = {*own, *FIGURES.values()}
    examples = re.findall(r'^def (\w+)\(\):\n    """', text_of("gallery.py"), re.MULTILINE)  # with words for it
    cards = re.findall(r"^```{figures}\n(.*?)```", text_of("gallery.md"), re.MULTILINE | re.DOTALL)
    shown = [line.split() for line in "".join(cards).splitlines()]  # a word after a name is a second figure
    drawn = [getattr(PUBLIC[name], "plot", PUBLIC[name]) for name, *second in shown if not second]
    assert set(drawn) == figures and len(drawn) == len(figures)
    assert sorted(examples) == sorted("_".join([name.rpartition(".")[2], *second]) for name, *second in shown)


def test_page_for_users_of_r_names_methods_and_losses_that_exist():
    page = text_of("from_r.md")
    assert set(re.findall(r'`"(\w+)"`', page)) <= {*pc.LOSSES, *pc.METHODS, "avg", "comp", "draws"}
    assert set(re.findall(r'method="(\w+)"', page)) <= set(pc.METHODS)


def test_every_loss_and_method_is_in_the_tables_of_the_documentation():
    search, losses = text_of("background", "search.md"), text_of("background", "losses.md")
    assert not [name for name in pc.METHODS if f'`"{name}"`' not in search]
    rows = re.findall(r'^\| `"(\w+)"` \|.*\| (yes|no|for a = 1) \| (\w*) ?\|$', losses, re.MULTILINE)
    of_page = {name: (metric != "no", unit) for name, metric, unit in rows}
    assert of_page == {name: (factory().metric, factory().unit) for name, factory in pc.LOSSES.items()}
    linear = re.search(r"A loss is \*\*linear\*\* .*?: only (.*?) are\.", losses, re.DOTALL)[1]
    assert set(re.findall(r'"(\w+)"', linear)) == {name for name, factory in pc.LOSSES.items() if factory().is_linear}
