"""Checks of arguments that many functions take, whose errors name the argument, and warnings at the user's line."""

import contextlib
import functools
import inspect
import os
import re
import warnings
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import TypeAliasType

from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.names import option_meant

RandomSeed = TypeAliasType("RandomSeed", int | np.random.Generator | np.random.SeedSequence | None)
"""Seeds that :func:`as_generator` takes; help() shows this name."""

_NAMES_OF_ITEMS = (
    " Items have the names that come with the data: the columns of a DataFrame with a row for each draw, or the "
    "coordinate of the items' dimension of a DataArray."
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # of which a Path has one slash; a drive has one letter
# Context managers and cached properties put lines of the standard library between the package's own.
_BETWEEN = str(Path(__file__).parents[1]) + os.sep, contextlib.__file__, functools.__file__


def is_integer(value: Any) -> bool:
    """Whether it is an integer of Python or NumPy, and no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is an integer or a float of Python or NumPy, and no bool."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_integer(name: str, value: Any) -> None:
    """Raise if a value is no integer."""
    if not is_integer(value):
        raise TypeError(f"`{name}` must be an integer; got {value!r}.")


def check_number(name: str, value: Any) -> None:
    """Raise if a value is no number."""
    if not is_number(value):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")


def check_count(name: str, value: Any) -> int:
    """Take an integer from 1."""
    check_integer(name, value)
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1; got {value}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Take True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False; got {value!r}.")
    return bool(value)


def check_clusters(n_clusters: Any, max_clusters: Any) -> None:
    """Take two integers from 1 or None, the first at most the second."""
    for name, value in (("n_clusters", n_clusters), ("max_clusters", max_clusters)):
        if value is not None:
            check_count(name, value)
    if n_clusters is not None and max_clusters is not None and n_clusters > max_clusters:
        raise ValueError(f"`n_clusters` must not exceed `max_clusters`; got {n_clusters} and {max_clusters}.")


def listing(names: Iterable[Hashable]) -> str:
    """List names in a message."""
    return ", ".join(repr(str(name)) for name in names) or "none"


def check_left_out(what: str, **given: Any) -> None:
    """Raise an error if an argument is given that does not fit what came."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"`{name}` must be left out for {what}; got {value!r}.")


def unknown_option(called: str, method: str, name: str, own: Iterable[str], known: Iterable[str]) -> TypeError:
    """Make the error for an argument that a function and its method do not take, with the method's own options."""
    hint = _NAMES_OF_ITEMS if name in ("names", "items", "item_names") else option_meant(name, known)
    options = ", ".join(own) or "no options of its own"
    return TypeError(f"{called}() has no argument `{name}`.{hint} Method {method!r} takes {options}.")


def check_above(name: str, value: Any, lower: float) -> float:
    """Take a finite number above `lower`."""
    check_number(name, value)
    if not lower < value < np.inf:
        raise ValueError(f"`{name}` must be a finite number above {lower}; got {value!r}.")
    return float(value)


def check_between(name: str, value: float, upper: int) -> float:
    """Take a number between 0 and `upper`, both excluded."""
    check_number(name, value)
    if not 0 < value < upper:
        hint = f" Did you mean {value / 100:g}?" if upper == 1 < value < 100 else ""
        raise ValueError(f"`{name}` must lie between 0 and {upper}, both excluded; got {value!r}.{hint}")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Take a number above 0 and at most 1."""
    check_number(name, value)
    if not 0 < value <= 1:
        raise ValueError(f"`{name}` must lie between 0, excluded, and 1; got {value!r}.")
    return float(value)


def check_seconds(seconds: float | None) -> None:
    """Take a positive number of seconds, or None for no limit."""
    if seconds is None:
        return
    check_number("seconds", seconds)
    if not seconds > 0:
        raise ValueError(f"`seconds` must be positive; got {seconds}.")


def as_path(name: str, value: Any) -> Path:
    """Take a path, with ~ for the home directory, and make it absolute: the working directory may change."""
    try:
        path = Path(value)
    except TypeError:  # Python's own does not name the argument
        raise TypeError(f"`{name}` must be a path; got {value!r}.") from None
    if _URL.match(str(path)):
        raise ValueError(f"`{name}` must be a path on a disk of this machine, not a URL; got {str(value)!r}.")
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"`{name}` must be a path; got {str(value)!r}, and there is no such user.") from None


def as_numbers(name: str, values: Any) -> Floats:
    """Take an array of numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # NumPy's own do not name the argument
        raise TypeError(f"`{name}` must be numbers; got {values!r}.") from None


def as_generator(random_seed: Any, *, otherwise: int | None = None) -> np.random.Generator:
    """Make a Generator from a seed, or return a Generator as it is; None means `otherwise`."""
    try:
        if isinstance(random_seed, bool):
            raise TypeError
        return np.random.default_rng(otherwise if random_seed is None else random_seed)
    except (TypeError, ValueError) as error:
        wanted = "an integer from 0, a Generator or None"
        raise type(error)(f"`random_seed` must be {wanted}; got {random_seed!r}.") from None


def warn(message: str) -> None:
    """Warn at the innermost line outside the package that led to the call."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
