"""The decorators of all kernels, and the line that says that kernels are being compiled."""

import hashlib
import logging
from functools import partial
from pathlib import Path

import numba
from filelock import FileLock
from numba import types
from numba.core import event
from numba.extending import overload

_PACKAGE = __name__.partition(".")[0]
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
"""Decorate a function that only kernels call; it needs no entry from Python and no file in the cache."""


def either(kind, one, other, words):
    """A function for kernels: `one` where its first argument is a NamedTuple of this kind or holds one, else `other`.

    The choice is made when the caller is compiled, which then contains the chosen function only.
    """
    one, other = (getattr(function, "py_func", function) for function in (one, other))

    def chosen(first, *rest):
        return (one if type(first) is kind or kind in map(type, first) else other)(first, *rest)

    @overload(chosen, strict=False)
    def compiled(first, *rest):
        return one if any(getattr(part, "instance_class", None) is kind for part in (first, *first.types)) else other

    chosen.__doc__ = words
    return chosen


class _Announcement(event.Listener):
    """Prints, before the first kernel is compiled into an empty cache, that this happens once."""

    _is_due = True

    def on_start(self, compilation):
        """Look at the first kernel of this package."""
        kernel = compilation.data["dispatcher"]
        if self._is_due and _is_own(kernel):
            self._is_due = False
            if not any(Path(kernel.stats.cache_path).glob("*.nbi")):
                logging.getLogger(_PACKAGE).warning(
                    "%s compiles its kernels for this machine, each when it is first called, and keeps them on disk. "
                    "The command posterior-consensus compile does it for all of them.",
                    _PACKAGE,
                )

    def on_end(self, compilation):
        """Nothing is to be done."""


class _Returns(event.Listener):
    """Refuses a kernel that returns more to Python than numbers, or plain tuples of numbers.

    To make an array or a NamedTuple, numba runs Python code, in which Ctrl-C raises an error. numba does not look
    whether there is one: Python then reports a SystemError, or the process ends. See docs/developers/upstream.md.
    """

    def on_start(self, compilation):
        """Nothing is known yet."""

    def on_end(self, compilation):
        """Look at what the kernel returns."""
        kernel = compilation.data["dispatcher"]
        if _is_own(kernel) and "no_cpython_wrapper" not in kernel.targetoptions:
            for compiled in kernel.overloads.values():
                kind = compiled.signature.return_type
                if not _is_numbers(kind):
                    raise TypeError(f"The kernel {kernel.py_func.__name__} must return numbers to Python; got {kind}.")


def _is_own(kernel):
    """Whether a kernel is of this package; functions that PyTensor writes are of no module."""
    return (kernel.py_func.__module__ or "").startswith(f"{_PACKAGE}.")


def _is_numbers(kind):
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.BaseNamedTuple):
        return all(map(_is_numbers, kind))
    return isinstance(kind, (types.Number, types.Boolean, types.NoneType))


class _Turns(event.Listener):
    """A lock under which one process at a time compiles a kernel; the next process finds it on disk."""

    def __init__(self, folder):
        self._folder, self._locks = folder, []

    def on_start(self, compilation):
        """Wait until no other process compiles this kernel."""
        kernel = compilation.data["dispatcher"]
        if kernel.stats.cache_path is not None:
            self._locks.append(FileLock(f"{self._folder}/{kernel.py_func.__module__}.{kernel.py_func.__name__}"))
            self._locks[-1].acquire()

    def on_end(self, compilation):
        """Release the lock."""
        if compilation.data["dispatcher"].stats.cache_path is not None:
            self._locks.pop().release()


def compile_in_turns(folder):
    """Make processes with the same cache folder compile in turns, as numba's cache requires; on one thread."""
    numba.config.NUMBA_NUM_THREADS = 1
    event.register("numba:compile", _Turns(folder))


for _listener in (_Announcement(), _Returns()):
    event.register("numba:compile", _listener)
