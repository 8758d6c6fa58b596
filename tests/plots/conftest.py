import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _closed():
    """No figure stays open after a test."""
    yield
    plt.close("all")
