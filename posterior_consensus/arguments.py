"""Arguments that many functions take, checked with the argument's name in the error."""

from typing import Any

import numpy as np


def check_count(name: str, value: Any) -> int:
    """Take a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1; got {value}.")
    return int(value)


def check_above(name: str, value: Any, lower: float) -> float:
    """Take a finite number above `lower`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"`{name}` must be a number; got {value!r}.")
    if not lower < value < np.inf:
        raise ValueError(f"`{name}` must be a finite number above {lower}; got {value!r}.")
    return float(value)


def check_between(name: str, value: float, upper: int) -> float:
    """Take a number between 0 and `upper`, both excluded."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"`{name}` must be a number; got {type(value).__name__}.")
    if not 0 < value < upper:
        raise ValueError(f"`{name}` must lie between 0 and {upper}, both excluded; got {value!r}.")
    return float(value)


def check_seconds(seconds: float) -> None:
    """Take a positive number of seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.integer, np.floating)):
        raise TypeError(f"`seconds` must be a number; got {seconds!r}.")
    if not seconds > 0:
        raise ValueError(f"`seconds` must be positive; got {seconds}.")


def as_generator(random_seed: Any) -> np.random.Generator:
    """Take whatever seeds a Generator, or one as it is."""
    try:
        if isinstance(random_seed, bool):
            raise TypeError
        return np.random.default_rng(random_seed)
    except (TypeError, ValueError) as error:
        wanted = "a whole number from 0, a Generator or None"
        raise type(error)(f"`random_seed` must be {wanted}; got {random_seed!r}.") from None
