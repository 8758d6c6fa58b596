"""Files that are whole or absent: renamed once they are written, locked by the process that writes, and mapped."""

import errno
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from mmap import ACCESS_COPY, mmap
from pathlib import Path

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout

from posterior_consensus.runtime.executor import in_order

_STRETCH = 2**24  # bytes that have one checksum


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that is renamed to `path` once it is written; a failure leaves the old file whole.

    Links are followed. Devices and pipes are written to themselves. Raises FileNotFoundError if there is no such
    directory. Raises IsADirectoryError if `path` is a directory itself. Raises OSError if nothing can be written there.
    """
    target = path.resolve()
    if path.is_dir():
        raise IsADirectoryError(f"`path` must be a file, not a directory; got {str(path)!r}.")
    if path.exists() and not path.is_file():
        yield path
    elif not target.parent.is_dir():
        raise FileNotFoundError(f"`path` must be a file in a directory that exists; got {str(path)!r}.")
    else:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:  # else the umask would not count
            new = Path(folder) / path.name
            yield new
            if target.exists():
                shutil.copymode(target, new)
            new.replace(target)


def locked(path: Path, lock: Path) -> BaseFileLock:
    """Lock a store, by a file of its own, until the lock is released, also by the end of the process, however it ends.

    Raises BlockingIOError if it is locked already. Raises OSError if there can be no lock: without permission, or on a
    disk that is read-only or has no locks.
    """
    found = FileLock(lock, thread_local=False)  # released by whatever thread closes the store
    try:
        found.acquire(blocking=False)
    except (OSError, NotImplementedError) as error:
        if (why := _no_lock_because(lock, error)) is not None:
            raise type(why)(
                why.errno,
                f"`store` {str(path)!r} cannot be locked, because {lock.name!r} cannot be made or locked in its folder "
                f"({why.strerror}). Name a folder on a disk of this machine that can be written to",
            ) from error
        raise BlockingIOError(
            f"`store` {str(path)!r} is in use by another process, and only one process at a time can write to "
            "it. Wait for it, close the accumulator there, or end that process."
        ) from None
    return found


def _no_lock_because(lock: Path, error: OSError | NotImplementedError) -> OSError | None:
    """The error that keeps a file from being a lock; None if another process has it."""
    try:
        with lock.open("a"):
            pass
    except OSError as found:
        return found
    return None if isinstance(error, Timeout) else OSError(getattr(error, "errno", None) or errno.ENOLCK, str(error))


@contextmanager
def room(place: Path, n_bytes: int) -> Iterator[None]:
    """Add the space needed to errors of a full disk."""
    try:
        if shutil.disk_usage(place).free < n_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            error.errno,
            f"There is no room in {str(place)!r} for a file of labels of {n_bytes / 1e9:.3g} GB. Name a place that has "
            "room by `store`.",
        ) from error


def lengthen(file: FileIO, n_bytes: int) -> None:
    """Lengthen a file; its space is reserved, as a map on a full disk ends the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
    else:
        file.truncate(n_bytes)


def mapped(file: FileIO) -> mmap:
    """Map a file; what is written to the map stays in this process, and kernels need not be compiled for constants."""
    if sys.platform == "win32":
        return mmap(file.fileno(), 0, access=ACCESS_COPY)
    import mmap as flags

    no_reserve = getattr(flags, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)  # named from Python 3.13
    # else Linux refuses a file that is larger than its memory
    return mmap(file.fileno(), 0, flags.MAP_PRIVATE | no_reserve, flags.PROT_READ | flags.PROT_WRITE)


def checksums(content: memoryview) -> bytes:
    """Checksums of stretches of a file, by threads. These keep no other view of it, so that it can be released."""

    def checksum(first: int) -> int:
        return zlib.crc32(content[first : first + _STRETCH])

    return np.array([*in_order(checksum, ((first,) for first in range(0, len(content), _STRETCH)))], "<u4").tobytes()


def remove(path: Path) -> None:
    """Remove a file that may be absent; one that is open or mapped stays on Windows, which removes no such file."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def offset_of_checksums(n_bytes: int) -> int:
    """Offset of the checksums in a file of this length that ends with them."""
    return n_bytes - 4 * -(-n_bytes // (_STRETCH + 4))
