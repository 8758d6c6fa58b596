"""Sentences that users read, approved once.

``approved(area, name, text)`` of a test compares a text with the one in ``tests/approved/<area>.txt``. ``make approve``
writes these files anew; whoever changes a sentence reads it there, in the diff. A part of the tests, as in
``pytest tests/summary --approve``, writes its own texts and keeps the others.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "approved"
MARK = "=== "


class Approved:
    """The approved sentences by area and name."""

    def __init__(self, renews: bool) -> None:
        self.renews = renews
        self.texts: dict[str, dict[str, str]] = {}

    def check(self, area: str, name: str, text: str) -> None:
        """Compare a text with the approved one, or keep it as the approved one."""
        text = text.strip()
        assert MARK not in text
        if self.renews:
            texts = self.texts.setdefault(area, {})
            assert texts.setdefault(name, text) == text, f"two texts have the name {name!r} in {area!r}"
        else:
            known = self.texts.setdefault(area, read(area))
            assert name in known, f"{name!r} is not in tests/approved/{area}.txt: run `make approve`, and read the diff"
            assert text == known[name]

    def pytest_collection_modifyitems(self, config, items) -> None:
        if self.renews:
            chosen = [item for item in items if "approved" in item.fixturenames]
            config.hook.pytest_deselected(items=[item for item in items if "approved" not in item.fixturenames])
            items[:] = chosen

    def pytest_sessionfinish(self, session, exitstatus) -> None:
        if self.renews and exitstatus == pytest.ExitCode.OK:
            options = session.config.option
            is_part = session.config.args != ["tests"] or options.keyword or options.markexpr
            for area, own in self.texts.items():
                texts = (read(area) if is_part else {}) | own
                lines = [f"{MARK}{name}\n{text}\n" for name, text in sorted(texts.items())]
                (FOLDER / f"{area}.txt").write_text("\n".join(lines), encoding="utf-8")


def read(area: str) -> dict[str, str]:
    """The approved sentences of an area by name."""
    file = FOLDER / f"{area}.txt"
    if not file.exists():
        return {}
    parts = file.read_text(encoding="utf-8").split(MARK)[1:]
    return {name: text.strip() for name, _, text in (part.partition("\n") for part in parts)}
