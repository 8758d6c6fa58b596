"""What tests and doctests have in common."""

import os
import signal
import sys

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores Ctrl-C


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test has drawn, where it has drawn anything."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
