"""What independent runs differ in: one value for each run and factor."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.items import is_named

_FIELD = re.compile(r"\{(\w*)\}")
_ALONE = ""  # name of the field {}


def are_factors(given: Any, names: npt.NDArray[Any]) -> bool:
    """Whether this says what runs of these names differ in by several factors, and not by one value for each run."""
    if isinstance(given, str):
        return bool([one for one in _FIELD.findall(given) if one != _ALONE])
    if hasattr(given, "columns"):
        return True
    return isinstance(given, Mapping) and not any(name in given for name in names.tolist())


def factors_of(given: Any, names: npt.NDArray[Any], argument: str) -> pd.DataFrame:
    """A row for each run, in the order of `names`, and a column for each factor.

    `given` is a pattern of the runs' names with fields, such as "leiden_{n_pcs}_{resolution}_*", a table with a row for
    each run by its name, or a dict from the factors' names to what :func:`values_of_runs` takes.
    """
    if isinstance(given, str):
        found = fields_in_names(given, names, argument)
        if _ALONE in found:
            raise ValueError(f"`{argument}` must name each field of a pattern, as {{n_pcs}}; got {given!r}.")
    else:
        given = given.to_pandas() if hasattr(given, "to_pandas") else given
        if not isinstance(given, (pd.DataFrame, Mapping)):
            raise TypeError(
                f"`{argument}` must be a pattern of the runs' names with fields, such as "
                "'leiden_{n_pcs}_{resolution}_*', a table with a row for each run, or a dict of factors; got "
                f"{type(given).__name__}."
            )
        if isinstance(given, pd.DataFrame) and not is_named(given.index):
            raise ValueError(f"`{argument}`, a table, must have the runs' names as its index; got row numbers.")
        found = {str(name): values_of_runs(given[name], names, argument) for name in given}
    if not found:
        raise ValueError(f"`{argument}` must name at least one factor; got none.")
    return pd.DataFrame(found, index=pd.Index(names, tupleize_cols=False, name="run"))


def settings_of(factors: pd.DataFrame) -> npt.NDArray[Any]:
    """The setting of each run in words, such as "n_pcs=10, resolution=0.5"."""
    return np.array(
        [", ".join(f"{name}={value}" for name, value in row.items()) for row in factors.to_dict("records")],
        dtype=object,
    )


def values_of_runs(given: Any, names: npt.NDArray[Any], argument: str) -> npt.NDArray[Any]:
    """One value for each run: by a pattern with {}, by the runs' names, or in the order of the runs."""
    if isinstance(given, str):
        found = fields_in_names(given, names, argument)
        if list(found) != [_ALONE]:
            raise ValueError(
                f"`{argument}`, a pattern of the runs' names, must have {{}} once, for what the runs differ in, such "
                f"as 'leiden_{{}}_*'; got {given!r}."
            )
        return found[_ALONE]
    if isinstance(given, Mapping) or (isinstance(given, pd.Series) and is_named(given.index)):
        lacking = [name for name in names.tolist() if name not in given]
        if lacking:
            raise ValueError(f"`{argument}` must have a value for every run; {lacking[0]!r} is missing.")
        given = [given[name] for name in names.tolist()]
    values = np.asarray(given)
    if values.shape != names.shape:
        raise ValueError(
            f"`{argument}` must be one value for each of the {len(names)} runs, a dict of them by the runs' names, or "
            f"a pattern such as 'leiden_{{}}_*'; got shape {values.shape}."
        )
    if pd.isna(values).any():
        at = names[pd.isna(values).argmax()]
        raise ValueError(f"`{argument}` must not be missing; got {values[pd.isna(values)][0]} for run {at!r}.")
    return values


def fields_in_names(pattern: str, names: npt.NDArray[Any], argument: str) -> dict[str, npt.NDArray[Any]]:
    """Parts of each run's name by field, as numbers if all are; the field {} has an empty name."""
    fields = _FIELD.findall(pattern)
    if not fields or len(set(fields)) < len(fields):
        raise ValueError(
            f"`{argument}`, a pattern of the runs' names, must have {{}} once, for what the runs differ in, or fields "
            f"of different names such as {{n_pcs}}; got {pattern!r}."
        )
    parts = [re.escape(part).replace(r"\*", ".*").replace(r"\?", ".") for part in _FIELD.split(pattern)[::2]]
    expression = "(.+?)".join(parts)
    matches = [re.fullmatch(expression, str(name)) for name in names]
    if None in matches:
        raise ValueError(
            f"`{argument}` must be a pattern that fits the name of every run; got {pattern!r}, which does not fit "
            f"{str(names[matches.index(None)])!r}."
        )
    texts = np.array([one.groups() for one in matches if one], dtype=object).reshape(len(names), len(fields))
    return {field: _as_numbers(texts[:, k]) for k, field in enumerate(fields)}


def _as_numbers(texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers, if all texts are finite ones."""
    try:
        numbers = pd.to_numeric(texts)
    except ValueError:
        return texts
    return numbers if np.isfinite(numbers).all() else texts
