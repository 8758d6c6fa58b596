"""Fail if a call of README compiles a kernel where a wheel brought them all: ``python -I check_wheel.py``.

A processor without the features of the baseline, and another numba, compile them; the check then tells.
"""

import sys

from numba.core import event

import posterior_consensus as pc


def main():
    """Make one call for each kind of data and print what it compiled."""
    cells = pc.load_example("cells")
    quiet = {"random_seed": 1, "progressbar": False}
    calls = {
        "draws": lambda: pc.summarize(pc.load_example("galaxies"), **quiet),
        "layers": lambda: pc.compare_layers(pc.as_runs(cells, "leiden_*", groups="leiden_{}_*"), **quiet),
        "runs": lambda: pc.summarize(pc.as_runs(cells, "leiden_0.6_*"), **quiet),
        "pairs": lambda: pc.summarize(pc.as_pair_similarity(pc.load_example("pairs")), **quiet),
    }
    n_compiled = 0
    for name, call in calls.items():
        with event.install_recorder("numba:compile") as recorder:
            call()
        compiled = {record.data["dispatcher"].py_func.__name__ for _, record in recorder.buffer if record.is_start}
        n_compiled += len(compiled)
        print(f"{name}: {len(compiled)} kernels compiled", *sorted(compiled))
    return 1 if n_compiled else 0


if __name__ == "__main__":
    sys.exit(main())
