"""The memory budget, and sizes from which labels are held elsewhere, worked on in parts, or sent to workers.

The budget is a number, and never what the machine has free: what is computed, and which of two ways is taken, must not
depend on how busy a machine is. Each step asks by itself for its largest arrays, those that grow with the pairs of
items or with clusters times draws; what it computes on the way may take two or three times as much.

Answers depend on none of the sizes but the last three. Sizes that belong to one method or search stand beside it.
"""

import os
import re
from collections.abc import Iterator

VARIABLE = "POSTERIOR_CONSENSUS_MEMORY"
_DEFAULT = 4_000_000_000
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

# Shares of the memory budget
SHARE_HELD = 1 / 4  # up to this size labels are held in memory, and variables of files are read whole
SHARE_OF_READING = 1 / 16  # a block of a large variable, which a few threads work on and copy
SHARE_OF_FEW_DRAWS = 1 / 8  # draws taken of labels on disk that take no more are read when they are taken
SHARE_OF_PART = 1 / 16  # a part of an array that is worked on in parts
SHARE_OF_MODEL_TABLE = 1 / 32  # table of the perturbation model, one for each block of items

# Labels, draws and items in a block
LABELS_IN_BLOCK = 2**24  # of items, in all draws
LABELS_READ_AT_ONCE = 2**24  # of labels in memory that become canonical: memory that is used again takes less time
LABELS_IN_CLUSTER_BLOCK = 2**26  # on a worker of a cluster, at most
LABELS_IN_SMALL_CLUSTER_BLOCK = 2**22  # and at least
LABELS_TO_COMPARE = 2**20  # items whose labels over all draws are compared with one another
DRAWS_IN_BIT_PLANES = 4096  # bounds their memory, and is a block that could come from disk
PROBABILITIES_AT_ONCE = 4_000_000  # 32 MB
CELLS_AT_ONCE = 2**24  # of the contingency tables that go through the blocks together

# Sizes from which work goes another way
LABELS_WORTH_SENDING = 2**24  # that a call reads, below which a worker costs more than it saves
BYTES_WORTH_SENDING_ONCE = 2**16  # of an argument that is else sent with every call
LABELS_OF_LARGE_MODEL = 2**27  # from which the perturbation model reads them in blocks
LABELS_TO_BOUND = 500_000_000  # of more, the time of a summary matches too few draws for a bound of any use
LABELS_TO_SEARCH_AGAIN = 20_000_000  # of more, further searches of a summary take as long as its other steps together
ITEMS_OF_ALL_PAIRS = 10_000  # beyond this many items, quantities of pairs use a subset of this size


def budget() -> int:
    """Bytes that a step may take: 4 GB, or what the environment variable POSTERIOR_CONSENSUS_MEMORY says ("500MB").

    Raises ValueError if the variable says no size.
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

    Raises MemoryError if it takes more.
    """
    if not fits(n_bytes):
        enough = f"{VARIABLE}={in_words(1.05 * n_bytes).replace(' ', '')}"
        raise MemoryError(
            f"{what} would take {in_words(n_bytes)} of memory, and the budget is {in_words(budget())}. "
            f"{hint + ' Or set' if hint else 'Set'} the environment variable {enough} if the machine has as much."
        )


def parts(length: int, bytes_each: float) -> Iterator[slice]:
    """Slices of a range of indices, each of which takes a small part of the budget, or holds one index."""
    step = max(1, int(SHARE_OF_PART * budget() / bytes_each))
    return (slice(first, min(first + step, length)) for first in range(0, length, step))


def in_words(n_bytes: float) -> str:
    """A number of bytes in a unit that leaves few digits, such as "4 GB"."""
    rounded = float(f"{n_bytes:.3g}")
    unit = max((unit for unit, size in _UNITS.items() if size <= rounded), key=_UNITS.__getitem__, default="B")
    number = rounded / _UNITS[unit]
    return f"{number:.0f} {unit}" if number >= 1000 else f"{number:.3g} {unit}"
