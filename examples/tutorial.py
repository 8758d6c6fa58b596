"""Where the tutorials find their posteriors, and how they show values, as pages and as scripts run from any folder."""

from pathlib import Path

try:
    from IPython.display import display
except ImportError:  # a script needs no notebook
    display = print

__all__ = ["DATA", "display"]

DATA = Path(__file__).parent / "data"
