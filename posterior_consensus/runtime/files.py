"""What keeps files whole: a new name once they are written, a lock for the one process that writes, and checksums."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

LOCK = "lock"  # in a directory that is written to


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the path of a new file, which takes the name `path` once it is written; a failure leaves the old one whole.

    Links are followed. Devices and pipes are written to themselves.

    Raises
    ------
    FileNotFoundError
        If there is no such directory.
    IsADirectoryError
        If `path` is a directory itself.
    OSError
        If nothing can be written there.
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


def locked(path: Path) -> BaseFileLock:
    """Lock a store until the lock is released, also by the end of the process, however it ends.

    Raises
    ------
    BlockingIOError
        If it is locked already.
    """
    lock = FileLock(path / LOCK, thread_local=False)  # released by whatever thread drops the last draws
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise BlockingIOError(
            f"`store` {str(path)!r} is in use by another process, and only one process at a time can write to "
            "it. Wait for it, close the accumulator there, or end that process."
        ) from None
    return lock


def checksum_of(file: Path) -> Path:
    """Where the checksum of a file lies."""
    return file.with_name(f"{file.name}.sha256")


def sign(file: Path) -> None:
    """Write the checksum of a file beside it, in the format of ``sha256sum``."""
    checksum_of(file).write_bytes(_checksum(file.name, file.read_bytes()))


def signed(file: Path) -> bytes:
    """Read a file that has its checksum beside it.

    Raises
    ------
    ValueError
        If either is missing, or they do not fit.
    """
    try:
        content, checksum = file.read_bytes(), checksum_of(file).read_bytes()
    except FileNotFoundError as error:
        raise ValueError(f"{error.filename} is missing") from None
    if checksum != _checksum(file.name, content):
        raise ValueError(f"{file} is not as it was written")
    return content


def _checksum(name: str, content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()
