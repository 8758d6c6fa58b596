"""Where reproductions of papers go."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_of_results(smallest: bool) -> Iterator[Path]:
    """The folder reproduction/, made if it is not there; a temporary one for the smallest size."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder if smallest else "reproduction")
        kept.mkdir(exist_ok=True)
        yield kept
