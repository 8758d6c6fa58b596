"""Where compiled kernels are kept: those that came with the package, and those of this machine."""

from __future__ import annotations

import hashlib
import logging
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numba
from filelock import FileLock
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

PACKAGE = __name__.partition(".")[0]
_FOLDER = Path(__file__).parent
# All that is compiled depends on, hence not this file.
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("*.py")) if path.name != Path(__file__).name)
).hexdigest()[:16]
SHIPPED = _FOLDER / "compiled" / f"numba-{numba.__version__}"
"""Where the kernels are that came compiled with a wheel; numba reads no others than those of its own version."""
_X86_64_V3 = frozenset(
    "avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3 "
    "xsave".split()
)


class Baseline(NamedTuple):
    """A processor that shipped kernels are compiled for: its name and its features in the words of LLVM."""

    name: str
    features: frozenset[str]


def baseline(codegen: Any) -> Baseline:
    """The one of this kind of machine; every ARM has all that kernels use."""
    return Baseline("x86-64-v3", _X86_64_V3) if _machine(codegen) == "x86_64" else Baseline("generic", frozenset())


def missing_features(codegen: Any) -> list[str]:
    """Features that shipped kernels use and this process may not."""
    present = {feature[1:] for feature in codegen.magic_tuple()[2].split(",") if feature.startswith("+")}
    return sorted(baseline(codegen).features - present)


def came_compiled() -> bool:
    """Whether kernels came with the package that this process can load."""
    return any(SHIPPED.glob(f"*{SOURCES}*")) and not missing_features(cpu_target.target_context.codegen())


def _machine(codegen):
    return codegen.magic_tuple()[0].partition("-")[0]


def shipped_key(signature, codegen):
    """Return numba's key without the processor, whose features are looked at by themselves."""
    return signature, sys.platform, _machine(codegen)


def shipped_file(name):
    """Return numba's file of one kernel, without the time of its source: the name has the hash of all sources."""
    return IndexDataCacheFile(str(SHIPPED), name, None)


def _read_only(locator):
    """A kind of folder as numba has it, also where it cannot be written; numba refuses even to read it then."""
    return type("_ReadOnly", (locator,), {"is_read_only": True, "ensure_cache_path": lambda _: None})


class _Folder(FunctionCache._impl_class):
    """Where a kernel is on disk: in the first folder that can be written, else in one that can be read."""

    _locator_classes = FunctionCache._impl_class._locator_classes
    _locator_classes = (*_locator_classes, *map(_read_only, _locator_classes[:2]))  # NUMBA_CACHE_DIR and __pycache__


class Cache(FunctionCache):
    """numba's, in which a kernel that cannot be read or kept, as on a full disk, is compiled all the same."""

    _impl_class = _Folder
    turns: str | None = None  # folder of locks, while all kernels are compiled
    n_saved = 0
    _is_due = True
    _turn: Any = None

    @property
    def cache_path(self):
        """Where the kernel will be kept; None if it will not."""
        return None if hasattr(self._impl.locator, "is_read_only") else super().cache_path

    def load_overload(self, sig, target_context):
        """Return the kernel for a signature, or None."""
        # numba refreshes the context first, in .3 s, for what it does itself once it compiles: a kernel that is loaded
        # needs the run time for arrays and nothing else of it.
        rtsys.initialize(target_context)
        with self._errors_are_said(), self._guard_against_spurious_io_errors():
            found = self._shipped(sig, target_context) or self._load_overload(sig, target_context)
            if found is None and self.turns is not None and self.cache_path is not None:
                self._turn = FileLock(f"{self.turns}/{self._impl.filename_base}")
                self._turn.acquire()
                found = self._load_overload(sig, target_context)  # another process compiled it in the meantime
                if found is not None:
                    self._turn.release()
            return found

    def _shipped(self, sig, target_context):
        codegen = target_context.codegen()
        if missing_features(codegen):
            return None
        payload = shipped_file(self._impl.filename_base).load(shipped_key(sig, codegen))
        return None if payload is None else self._impl.rebuild(target_context, payload)

    def save_overload(self, sig, data):
        """Keep the kernel for a signature."""
        with self._errors_are_said():
            super().save_overload(sig, data)
            Cache.n_saved += 1
        if self._turn is not None:
            self._turn.release()

    @contextmanager
    def _errors_are_said(self):
        try:
            yield
        except OSError as error:
            if self.turns is not None:
                raise
            if Cache._is_due:
                Cache._is_due = False
                logging.getLogger(PACKAGE).warning(
                    "%s compiles its kernels in each process anew, since it cannot keep them on disk (%s). Set the "
                    "environment variable NUMBA_CACHE_DIR to a folder that can be written.",
                    PACKAGE,
                    error,
                )


class Announcement(event.Listener):
    """Prints that kernels are compiled, before the first, if there are none on disk; removes outdated ones."""

    _is_due = True

    def on_start(self, compilation):
        """Look at the first kernel of this package."""
        kernel = compilation.data["dispatcher"]
        if self._is_due and is_own(kernel) and kernel.stats.cache_path is not None:
            self._is_due = False
            on_disk = list(Path(kernel.stats.cache_path).glob("*.nb[ci]"))
            older = [file for file in on_disk if SOURCES not in file.name]
            for file in older:
                with suppress(OSError):  # another process removed it, or has it open, on Windows
                    file.unlink()
            if len(on_disk) == len(older):
                logging.getLogger(PACKAGE).warning(
                    "%s compiles its kernels for this machine, each when it is first called, and keeps them on disk. "
                    "The command posterior-consensus compile does it for all of them.",
                    PACKAGE,
                )

    def on_end(self, compilation):
        """Nothing is to be done."""


def is_own(kernel):
    """Whether a kernel is of this package; functions that PyTensor writes are of no module."""
    return (kernel.py_func.__module__ or "").startswith(f"{PACKAGE}.")


def compile_in_turns(folder: str) -> None:
    """Make processes with this folder compile each kernel once, as numba's cache requires; on one thread.

    An OSError is raised for the first kernel that cannot be kept.
    """
    Cache.turns = folder
    numba.config.NUMBA_NUM_THREADS = 1


def n_compiled() -> int:
    """Number of kernels that this process compiled and kept."""
    return Cache.n_saved
