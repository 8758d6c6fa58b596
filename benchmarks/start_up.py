"""Whole processes, from start to end: the first summaries in a fresh environment, and those that find all compiled.

The unit is a process that imports what every such process imports, measured beside each: seconds of one machine differ
from hour to hour.
"""

import os
import subprocess
import sys
import tempfile

from benchmarks._data import SHIPPED
from benchmarks._runner import ROOT, median_seconds

UNIT = "import numpy, scipy.sparse, pandas, xarray, numba"
SUMMARY = """
import numpy as np
import posterior_consensus as pc
{posterior}
pc.summarize(posterior, random_seed=1, progressbar=False)
"""
GALAXIES = f"posterior = {str(SHIPPED / 'galaxies.nc')!r}"
RECORDS = "from benchmarks.records import records; posterior = records(800, 100)"
WIDE = "from benchmarks._data import random_draws; posterior = random_draws(60, 3_000, 300, 0.1)"
SOFT = """
rng = np.random.default_rng(1)
odds = np.exp(4.0 * np.eye(3)[rng.integers(3, size=60)] + rng.normal(size=(200, 60, 3)))
posterior = pc.as_allocation_probabilities(odds / odds.sum(axis=-1, keepdims=True))
"""
KINDS = {"galaxies": GALAXIES, "800 records": RECORDS, "3,000 items, 300 clusters": WIDE, "soft assignments": SOFT}
COMPILE = "import sys; from posterior_consensus.cli import main; sys.exit(main(['compile']))"
REPEATS = 3


def tables(smallest):
    yield "", _rows(smallest)


def _rows(smallest):
    """A row for each process, in the order in which a user would meet them."""
    with tempfile.TemporaryDirectory() as folder:
        yield _row("import posterior_consensus", "import posterior_consensus", folder, REPEATS)
        if not smallest:
            for name, posterior in KINDS.items():
                code = SUMMARY.format(posterior=posterior)
                yield _row(f"{name}, first", code, folder, 1)
                yield _row(f"{name}, again", code, folder, REPEATS)
            yield _row("posterior-consensus compile, all", COMPILE, f"{folder}/empty", 1)


def _row(name, code, cache, repeats):
    """Median seconds, and the same in units."""
    unit, seconds = median_seconds(lambda: _run(UNIT, cache), lambda: _run(code, cache), repeats=repeats)
    return {"process": name, "seconds": seconds, "units": seconds / unit}


def _run(code, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment, cwd=ROOT)
