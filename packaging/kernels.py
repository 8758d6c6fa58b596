"""Compile all kernels for a wheel, for any processor of the baseline: ``python packaging/kernels.py``.

They replace those in posterior_consensus/kernels/compiled; hatch_build.py puts that folder into the wheel.
"""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from numba.core.registry import cpu_target

from posterior_consensus.kernels._cache import SHIPPED, baseline, shipped_file, shipped_key


def ship(caches):
    """Write what numba keeps, for one processor, as kernels of this package for all that have its features."""
    codegen = cpu_target.target_context.codegen()
    for index in caches.rglob("*.nbi"):
        with index.open("rb") as file:
            pickle.load(file)  # numba's version
            _, kernels = pickle.load(file)
        shipped = shipped_file(index.stem)
        for (signature, *_), name in kernels.items():
            shipped.save(shipped_key(signature, codegen), pickle.loads((index.parent / name).read_bytes()))


def main():
    """Compile all kernels anew and keep them in the package's folder."""
    shutil.rmtree(SHIPPED.parent, ignore_errors=True)
    SHIPPED.mkdir(parents=True)
    name = baseline(cpu_target.target_context.codegen()).name
    with tempfile.TemporaryDirectory() as folder:
        own = {"NUMBA_CACHE_DIR": folder, "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}
        command = [
            sys.executable,
            "-c",
            "import posterior_consensus_command as c; raise SystemExit(c.main())",
            "compile",
        ]
        subprocess.run(command, env=os.environ | own, check=True)
        ship(Path(folder))
    files = [file for file in SHIPPED.iterdir() if file.suffix == ".nbc"]
    print(f"{len(files)} kernels for {name}, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
