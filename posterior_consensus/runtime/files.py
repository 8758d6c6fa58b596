"""Files that are whole or absent: renamed once they are written, and locked by the process that writes."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that is renamed to `path` once it is written; a failure leaves the old file whole.

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


def locked(path: Path, lock: Path) -> BaseFileLock:
    """Lock a store, by a file of its own, until the lock is released, also by the end of the process, however it ends.

    Raises
    ------
    BlockingIOError
        If it is locked already.
    """
    found = FileLock(lock, thread_local=False)  # released by whatever thread closes the store
    try:
        found.acquire(blocking=False)
    except Timeout:
        raise BlockingIOError(
            f"`store` {str(path)!r} is in use by another process, and only one process at a time can write to "
            "it. Wait for it, close the accumulator there, or end that process."
        ) from None
    return found
