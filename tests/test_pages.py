"""README, documentation and tutorials as text: lines that fit, links that lead somewhere, names that exist."""

import re
from pathlib import Path

from tests.catalogue.functions import MODULES, PUBLIC, TOP

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "docs" / "llms.txt",
    *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts and "generated" not in page.parts),
    *(page for page in (ROOT / "examples").glob("*.py")),
]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
WIDTH = 120


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_no_line_is_too_long():
    """Rows of tables in Markdown can be longer; ruff checks those of examples."""
    failures = []
    for page, text in TEXTS.items():
        lines = text.splitlines()
        failures += [
            (str(page.relative_to(ROOT)), number)
            for number, line in enumerate(lines, 1)
            if len(line) > WIDTH and not line.lstrip("# ").startswith("|")
        ]
    assert not failures


def test_links_to_files_lead_to_files():
    failures = []
    for page, text in TEXTS.items():
        folder = ROOT / "docs" / "tutorials" if page.parent.name == "examples" else page.parent
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", without_code(text)):
            if "://" in target or target.startswith("mailto:"):
                continue
            is_tutorial = (ROOT / "examples" / f"{Path(target).stem}.py").exists()
            if not is_tutorial and not (folder / target).exists() and not (folder / f"{target}.md").exists():
                failures.append((str(page.relative_to(ROOT)), target))
    assert not failures


def test_names_on_a_page_exist():
    failures = []
    for page, text in TEXTS.items():
        for name in re.findall(r"\bpc\.([A-Za-z_][\w.]*[A-Za-z0-9])(?![\w*])", text):
            top, _, rest = name.partition(".")
            of_module = ".".join([top, *rest.split(".")[:1]])
            is_there = not rest or of_module in PUBLIC or rest in TOP if top in MODULES else top in TOP
            failures += [] if is_there else [(page.name, name)]
    assert not failures
