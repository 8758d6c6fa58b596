"""Files that a user asked for, written whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the path of a new file, which takes the name `path` once it is written; a failure leaves the old one whole.

    Links are followed. Devices and pipes are written to themselves.

    Raises
    ------
    FileNotFoundError
        If there is no such directory.
    OSError
        If nothing can be written there.
    """
    target = path.resolve()
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
