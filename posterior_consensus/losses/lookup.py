"""Losses by name or record, as users give them and as results store them."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from posterior_consensus.losses.partition_losses import LOSSES, NOISE_LOSSES, PAIR_LOSSES, vi
from posterior_consensus.losses.record import Loss, NoiseLoss, PartitionLoss
from posterior_consensus.runtime.names import loss_meant

AnyLoss = TypeVar("AnyLoss", bound=Loss)


@overload
def as_loss(loss: str | Loss | None, *partitions: Any, default: str | Loss = "vi") -> Loss: ...


@overload
def as_loss(loss: str | Loss | None, *partitions: Any, kind: type[AnyLoss]) -> AnyLoss: ...


def as_loss(loss: str | Loss | None, *partitions: Any, kind: type[Loss] = Loss, default: str | Loss = "vi") -> Loss:
    """Take the loss under which partitions are to be judged, by name or as a record.

    None stands for the loss that the partitions were found under, and for `default` where that is not known. Where
    a PartitionLoss is needed, it stands for "vi" if they were found under a NoiseLoss. `kind` is PartitionLoss where a
    loss between two partitions is needed. Raises ValueError if there is no loss of that name, it is not of this kind,
    or the partitions were found under several losses; TypeError if `loss` is neither a name nor a record.
    """
    record = _loss_of_name(_own_loss(partitions) or default) if loss is None else _loss_of_name(loss)
    if loss is None and isinstance(record, NoiseLoss) and kind is PartitionLoss:
        record = vi()  # to which each item of noise is a cluster of its own
    if not isinstance(record, kind):
        raise ValueError(
            f"`loss` must be a loss between two partitions here, such as {', '.join(map(repr, LOSSES))}; got "
            f"{record.name!r}, a {type(record).__name__}."
        )
    return record


def factories() -> dict[str, Callable[..., Loss]]:
    """Return the factories of LOSSES, NOISE_LOSSES and PAIR_LOSSES by name."""
    return {**LOSSES, **NOISE_LOSSES, **PAIR_LOSSES}


def _loss_of_name(loss: str | Loss) -> Loss:
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"`loss` must be a name or a PartitionLoss such as binder(a=0.5); got {type(loss).__name__}.")
    factory = factories().get(loss.lower())
    if factory is None:
        names = ", ".join(map(repr, factories()))
        hint = loss_meant(loss, factories())
        raise ValueError(f"`loss` must be a PartitionLoss or one of {names}; got {loss!r}.{hint}")
    return factory()


def _own_loss(partitions: tuple[Any, ...]) -> Loss | None:
    """The loss that the partitions were found under, or None if that is not known."""
    losses = (getattr(partition, "loss", None) for partition in partitions)
    own = [loss for loss in losses if isinstance(loss, Loss)]
    if any(loss != own[0] for loss in own):
        names = ", ".join(sorted({repr(loss.name) for loss in own}))
        raise ValueError(f"`loss` must be given, as the partitions were found under several losses; got {names}.")
    return own[0] if own else None


def as_loss_of_draws(loss: str | Loss | None, *partitions: Any) -> PartitionLoss | NoiseLoss:
    """Take a loss between a partition and a draw, with noise or without, as :func:`as_loss` does."""
    record = as_loss(loss, *partitions)
    return record if isinstance(record, NoiseLoss) else as_loss(record, kind=PartitionLoss)


def as_metric(loss: PartitionLoss, needed_by: str) -> PartitionLoss:
    """Take a loss that is a metric.

    Raises ValueError if the loss is not a metric; the message lists the metrics.
    """
    if not loss.metric:
        metrics = ", ".join(repr(name) for name, factory in LOSSES.items() if factory().metric)
        raise ValueError(f"`loss` must be a metric, as {needed_by} needs; got {loss.name!r}, metrics are {metrics}.")
    return loss


def with_parameters(loss: AnyLoss, **parameters: float | str) -> AnyLoss:
    """Return the loss that the same factory makes with other parameters."""
    made = factories()[_key(loss.name)](**parameters)
    assert isinstance(made, type(loss))
    return made


def loss_attrs(loss: Loss, prefix: str = "") -> dict[str, str]:
    """Name and parameters of a loss as attributes of a Dataset; :func:`loss_from` reads them."""
    return {f"{prefix}loss": loss.name, f"{prefix}loss_parameters": json.dumps(dict(loss.parameters))}


def loss_from(attrs: Mapping[Any, Any], prefix: str = "") -> Any:
    """Make the loss again whose name and parameters are among these attributes.

    Raises KeyError if they are not. Raises ValueError if there is no loss of that name.
    """
    name, parameters = attrs[f"{prefix}loss"], json.loads(attrs[f"{prefix}loss_parameters"])
    key = _key(name)
    if key not in factories():
        raise ValueError(
            f"`dataset` must be of a loss in LOSSES; got {name!r}. Add a function that makes its record first: "
            f"LOSSES[{key!r}] = ..."
        )
    return factories()[key](**parameters)


def _key(name: str) -> str:
    """The key of a loss's factory: its name without parameters."""
    return name.partition("(")[0]
