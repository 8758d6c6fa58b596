"""Losses by name or record, as users give them and as results store them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from posterior_consensus.losses.pair_losses import PAIR_LOSSES
from posterior_consensus.losses.partition_losses import LOSSES, pairs, vi
from posterior_consensus.losses.record import Need, Objective, PairLoss, PartitionLoss


def as_loss(loss: str | Objective) -> PartitionLoss:
    """Take a loss between two partitions by name or as a record.

    Raises
    ------
    ValueError
        If there is no such loss of that name; the message lists those there are.
    TypeError
        If `loss` is neither.
    """
    record = as_objective(loss)
    if isinstance(record, PairLoss):
        raise ValueError(
            f"`loss` must be a loss between two partitions here, such as {', '.join(map(repr, LOSSES))}; got "
            f"{record.name!r}, which judges a partition by a similarity matrix."
        )
    return record


def as_objective(loss: str | Objective) -> Objective:
    """Take a loss between two partitions, or one given a similarity matrix, by name or as a record.

    Raises
    ------
    ValueError
        If there is no loss of that name; the message lists those there are.
    TypeError
        If `loss` is neither.
    """
    if isinstance(loss, (PartitionLoss, PairLoss)):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"`loss` must be a name or a PartitionLoss such as binder(a=0.5); got {type(loss).__name__}.")
    factory = (LOSSES | PAIR_LOSSES).get(loss.lower())
    if factory is None:
        names = ", ".join(map(repr, [*LOSSES, *PAIR_LOSSES]))
        raise ValueError(f"`loss` must be a PartitionLoss or one of {names}; got {loss!r}.")
    return factory()


def loss_of(loss: str | Objective | None, *partitions: Any) -> PartitionLoss:
    """Take the loss between partitions under which partitions are to be judged.

    Parameters
    ----------
    loss : str, PartitionLoss or None
        None stands for the loss that the partitions were found under, and for "vi" where that is not known.
    *partitions : result object, DataArray or label vector
        What is judged; a result has its loss as `loss`.

    Raises
    ------
    ValueError
        If `loss` is None and the results were found under several losses, and as :func:`as_loss`.
    """
    return as_loss(objective_of(loss, *partitions))


def objective_of(loss: str | Objective | None, *partitions: Any) -> Objective:
    """Do what :func:`loss_of` does, but take losses given a similarity matrix too."""
    if loss is not None:
        return as_objective(loss)
    own = [
        one
        for one in (getattr(partition, "loss", None) for partition in partitions)
        if isinstance(one, (PartitionLoss, PairLoss))
    ]
    if any(one != own[0] for one in own):
        names = ", ".join(sorted({repr(one.name) for one in own}))
        raise ValueError(f"`loss` must be given, as the partitions were found under several losses; got {names}.")
    return own[0] if own else vi()


def as_metric(loss: PartitionLoss, needed_by: str) -> PartitionLoss:
    """Take a loss that is a metric.

    Raises
    ------
    ValueError
        If it is not one; the message lists those there are.
    """
    if not loss.metric:
        metrics = ", ".join(repr(name) for name, factory in LOSSES.items() if factory().metric)
        raise ValueError(f"`loss` must be a metric, as {needed_by} needs; got {loss.name!r}, metrics are {metrics}.")
    return loss


def loss_attrs(loss: Objective, prefix: str = "") -> dict[str, str]:
    """Name and parameters of a loss as attributes of a Dataset; :func:`objective_from` reads them."""
    return {f"{prefix}loss": loss.name, f"{prefix}loss_parameters": json.dumps(dict(loss.parameters))}


def loss_from(attrs: Mapping[Any, Any], prefix: str = "") -> PartitionLoss:
    """Do what :func:`objective_from` does for a loss between two partitions."""
    return as_loss(objective_from(attrs, prefix))


def objective_from(attrs: Mapping[Any, Any], prefix: str = "") -> Objective:
    """Make the loss again whose name and parameters are among these attributes.

    Raises
    ------
    KeyError
        If they are not.
    ValueError
        If there is no loss of that name.
    """
    name, parameters = attrs[f"{prefix}loss"], json.loads(attrs[f"{prefix}loss_parameters"])
    key = name.partition("(")[0]
    known: dict[str, Callable[..., Objective]] = {**LOSSES, **PAIR_LOSSES}
    if key not in known:
        raise ValueError(
            f"`dataset` must be of a loss in LOSSES; got {name!r}. Add a function that makes its record first: "
            f"LOSSES[{key!r}] = ..."
        )
    return known[key](**parameters)


def needed_by(loss: Objective) -> Need:
    """What the expected loss is computed from: Binder's loss needs the similarities only, and so do PAIR_LOSSES."""
    return "pairs" if isinstance(loss, PairLoss) or is_binder(loss) else "draws"


def is_binder(loss: Objective) -> TypeGuard[PartitionLoss]:
    """Whether the loss is b (B - A) + c (C - A) with h(x) = x (x - 1) / 2: a number of pairs of each kind."""
    if isinstance(loss, PairLoss):
        return False
    terms = loss.numerator
    return (
        loss.h is pairs
        and not loss.denominator
        and set(terms) == {"A", "B", "C"}
        and min(terms["B"], terms["C"]) > 0
        and terms["A"] == -(terms["B"] + terms["C"])
    )
