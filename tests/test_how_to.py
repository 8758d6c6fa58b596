"""Every block of Python code on the how-to pages runs, in the order of the page, and prints and plots what it shows."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in (ROOT / "docs" / "how_to").glob("*.md") if "```text" in page.read_text("utf-8"))
BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?((?:\n```{plotted}\n.*?^```\n)*)", re.MULTILINE | re.DOTALL
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert len(blocks) > 2
    for code, shown, plotted in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        assert len(plt.get_fignums()) == plotted.count("{plotted}"), code
        plt.close("all")
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == shown.splitlines(), code
