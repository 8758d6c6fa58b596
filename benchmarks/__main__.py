"""``python -m benchmarks NAME`` prints the tables of a benchmark; without a name, what there is."""

import sys
from importlib import import_module

from benchmarks._runner import names, run

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in names():
        run(sys.argv[1], sys.argv[2:])
    else:
        for name in names():
            print(f"{name:40} {import_module(f'benchmarks.{name}').__doc__.splitlines()[0]}")
