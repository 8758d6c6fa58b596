"""The memory budget: how many bytes large arrays may take.

It is a number, and never what the machine has free: what is computed, and which of two ways is taken, must not depend
on how busy a machine is. Each step asks by itself for its largest arrays, those that grow with the
pairs of items or with clusters times draws; what it computes on the way may take two or three times as much.
"""

import os
import re
from collections.abc import Iterator

from posterior_consensus.runtime import sizes

VARIABLE = "POSTERIOR_CONSENSUS_MEMORY"
_DEFAULT = 4_000_000_000
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def budget() -> int:
    """Bytes that a step may take: 4 GB, or what the environment variable POSTERIOR_CONSENSUS_MEMORY says ("500MB").

    Raises
    ------
    ValueError
        If the variable says no size.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return _DEFAULT
    size = re.fullmatch(r"\s*(\d+\.?\d*)\s*(B|KB|MB|GB|TB)?\s*", text, re.IGNORECASE)
    if size is None or float(size[1]) == 0:
        raise ValueError(f"The environment variable {VARIABLE} must be a size such as '2GB' or '500MB'; got {text!r}.")
    return int(float(size[1]) * _UNITS[(size[2] or "B").upper()])


def fits(n_bytes: float) -> bool:
    """Whether this many bytes are within the budget."""
    return n_bytes <= budget()


def check(n_bytes: float, what: str, hint: str = "") -> None:
    """Raise an error where `what` takes more than the budget; `hint` names a way out other than a larger budget.

    Raises
    ------
    MemoryError
        If it takes more.
    """
    if not fits(n_bytes):
        enough = f"{VARIABLE}={in_words(1.05 * n_bytes).replace(' ', '')}"
        raise MemoryError(
            f"{what} would take {in_words(n_bytes)} of memory, and the budget is {in_words(budget())}. "
            f"{hint + ' Or set' if hint else 'Set'} the environment variable {enough} if the machine has as much."
        )


def parts(length: int, bytes_each: float) -> Iterator[slice]:
    """Slices of a range of indices, each of which takes a small part of the budget, or holds one index."""
    step = max(1, int(sizes.SHARE_OF_PART * budget() / bytes_each))
    return (slice(first, min(first + step, length)) for first in range(0, length, step))


def in_words(n_bytes: float) -> str:
    """A number of bytes in a unit that leaves few digits, such as "4 GB"."""
    rounded = float(f"{n_bytes:.3g}")
    unit = max((unit for unit, size in _UNITS.items() if size <= rounded), key=_UNITS.__getitem__, default="B")
    number = rounded / _UNITS[unit]
    return f"{number:.0f} {unit}" if number >= 1000 else f"{number:.3g} {unit}"
