"""Tables of pairs of records for a clerk, and the answers."""

from typing import Any

import numpy as np
import pandas as pd

from posterior_consensus.answers.scored_links import ScoredLinks, named_ends
from posterior_consensus.runtime.aliases import Floats, Positions

_IN_TEXT = {"": np.nan, "false": 0.0, "true": 1.0}  # as files have them


def named_pairs(found: ScoredLinks, ends: Positions, scores: Floats) -> pd.DataFrame:
    """Names of both records of pairs (m, 2), and their scores, NaN for a pair without one."""
    named = named_ends(found.cluster, found.names, *ends.T)
    return pd.DataFrame({"first": named["first"], "second": named["second"], "probability": scores})


def with_fields(sample: pd.DataFrame, fields: pd.DataFrame | None) -> pd.DataFrame:
    """Join the fields of both records of each pair."""
    if fields is None:
        return sample
    for end in ("first", "second"):
        lacking = ~sample[end].isin(fields.index)
        if lacking.any():
            raise ValueError(f"`fields` must have a row for each record; {sample[end][lacking].iloc[0]!r} is missing.")
        own = fields.loc[sample[end]].add_suffix(f"_{end}").reset_index(drop=True)
        sample = pd.concat([sample, own], axis=1)
    return sample


def answers_on(sample: pd.DataFrame, answers: Any) -> Floats:
    """Answers 0, 1 or NaN in the order of a sample, from a list in its order or a table of some pairs by name."""
    found = _by_name(sample, answers) if isinstance(answers, pd.DataFrame) else _zero_or_one(answers)
    if found.shape != (len(sample),):
        raise ValueError(
            f"`answers` must be one for each of the {len(sample)} pairs of the sample, or a table with the "
            f"columns 'first', 'second' and 'match'; got shape {found.shape}."
        )
    if np.isnan(found).all():
        raise ValueError("`answers` must have at least one answer; got none.")
    return found


def _by_name(sample: pd.DataFrame, table: pd.DataFrame) -> Floats:
    for column in ("first", "second", "match"):
        if column not in table:
            raise ValueError(f"`answers`, a table, must have a column {column!r}; got {list(table.columns)}.")
    place = {pair: k for k, pair in enumerate(_names_in_text(sample))}
    found = np.full(len(sample), np.nan)
    for pair, answer in zip(_names_in_text(table), _zero_or_one(table["match"]), strict=True):
        if pair not in place:
            got = " and ".join(map(repr, sorted(pair)))
            raise ValueError(
                f"`answers` must be of pairs of the sample; got {got}. The same pairs, partition, arguments and seed "
                "give the same sample."
            )
        found[place[pair]] = answer
    return found


def _names_in_text(table: pd.DataFrame) -> list[frozenset[str]]:
    """Names of the two records of each pair as text, as files have them."""
    return [frozenset(map(str, pair)) for pair in zip(table["first"].tolist(), table["second"].tolist(), strict=True)]


def _zero_or_one(answers: Any) -> Floats:
    """Answers as 0, 1 or NaN."""
    values = pd.Series(answers, dtype=object)
    found = np.array([np.nan if pd.isna(one) else _as_number(one) for one in values.tolist()], np.float64)
    wrong = ~(np.isnan(found) | np.isin(found, (0.0, 1.0)))
    if wrong.any():
        raise ValueError(f"`answers` must be True, False or missing; got {values[wrong.argmax()]!r}.")
    return found


def _as_number(answer: Any) -> float:
    given = _IN_TEXT.get(answer.strip().lower(), answer) if isinstance(answer, str) else answer
    try:
        return float(given)
    except (TypeError, ValueError):
        return np.inf
