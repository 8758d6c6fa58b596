"""The decorators of all kernels, and the line that says that kernels are being compiled."""

import hashlib
import logging
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Timer

import numba
from numba.core import event
from numba.extending import overload

_compiled = partial(numba.njit, nogil=True, no_cfunc_wrapper=True, error_model="numpy")
_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


def jit(function):
    """For a kernel that Python calls. It is compiled once and kept on disk until any file of this folder changes."""
    kernel = _compiled(cache=True)(function)
    if not numba.config.DISABLE_JIT:
        # numba looks at the kernel's own file only, but what a kernel calls is compiled into it. The version is read
        # before the rest, which may name classes that are no longer there.
        kernel._cache._cache_file._version = f"{numba.__version__} {_SOURCES}"
    return kernel


inner = partial(_compiled, no_cpython_wrapper=True)
"""For one that only kernels call, which then needs neither a way in from Python nor a place of its own in the cache."""


def either(kind, one, other, words):
    """A function for kernels: `one` where its first argument is a NamedTuple of this kind or holds one, else `other`.

    It is chosen where the caller is compiled, which then contains nothing of what is not chosen.
    """
    one, other = (getattr(function, "py_func", function) for function in (one, other))

    def chosen(first, *rest):
        return (one if type(first) is kind or kind in map(type, first) else other)(first, *rest)

    @overload(chosen, strict=False)
    def compiled(first, *rest):
        return one if any(getattr(part, "instance_class", None) is kind for part in (first, *first.types)) else other

    chosen.__doc__ = words
    return chosen


_PATIENCE = 1.0  # seconds of compilation after which a user wants to know
_PACKAGE = __name__.partition(".")[0]


def announce(kernel):
    """Say that kernels are being compiled, once for each cache of kernels."""
    with suppress(OSError, TypeError):  # a cache that cannot be written to, or none
        marker = Path(kernel._cache.cache_path) / f"{_PACKAGE}-{_SOURCES[:16]}.announced"
        if marker.exists():
            return
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    logging.getLogger(_PACKAGE).warning(
        "%s compiles its kernels for this machine, each when it is first needed, and keeps them on disk. The command "
        "posterior-consensus compile does it for all of them.",
        _PACKAGE,
    )


class _Announcement(event.Listener):
    """Announces compilation in this process that takes more than a second in all."""

    def __init__(self):
        self._lock = Lock()
        self._spent = 0.0
        self._depth = 0  # a kernel is compiled within the compilation of its caller
        self._timer = None

    def on_start(self, compilation):
        """Start to wait for the end of the outermost compilation."""
        with self._lock:
            self._depth += 1
            kernel = compilation.data["dispatcher"]
            if self._depth == 1 and self._spent < _PATIENCE and kernel.py_func.__module__.startswith(_PACKAGE):
                self._began = time.monotonic()
                self._timer = Timer(_PATIENCE - self._spent, self._say, [kernel])
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, compilation):
        """Stop to wait, if there is nothing left to wait for."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self._spent += time.monotonic() - self._began

    def _say(self, kernel):
        self._spent = _PATIENCE
        announce(kernel)


event.register("numba:compile", _Announcement())
