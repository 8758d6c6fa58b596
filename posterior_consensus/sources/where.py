"""What input functions share: which variable of the data to read, and the weights of its draws."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, fields
from typing import Any, NamedTuple

from posterior_consensus.runtime.arguments import check_left_out


class LogWeights(NamedTuple):
    """Weights given as logarithms."""

    values: Any


@dataclass(frozen=True, eq=False)
class Where:
    """The arguments of a public function that name the variable, with the weights of draws; checked once."""

    var_name: str | None = None
    group: str = "posterior"
    sample_dims: str | Sequence[str] | None = None
    item_dim: str | None = None
    weights: Any = None
    log_weights: InitVar[Any] = None
    component_dim: str | None = None

    def __post_init__(self, log_weights: Any) -> None:
        for argument in ("var_name", "item_dim", "component_dim"):
            name = getattr(self, argument)
            if name is not None and not isinstance(name, str):
                raise TypeError(f"`{argument}` must be a name; got {name!r}.")
        if self.item_dim is not None and self.item_dim == self.component_dim:
            raise ValueError(f"`item_dim` and `component_dim` must differ; got {self.item_dim!r} for both.")
        if log_weights is not None:
            if self.weights is not None:
                raise ValueError("`log_weights` must be left out where `weights` are given; got both.")
            object.__setattr__(self, "weights", LogWeights(log_weights))

    def check_no_variable(self) -> None:
        """Raise an error if a variable is named for draws that are made already."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "weights"}
        what = "PartitionDraws, stores and accumulators, whose draws are made already"
        check_left_out(what, **{**named, "group": self._own_group})

    def check_no_group(self) -> None:
        """Raise an error if a group of tables or arrays is named."""
        check_left_out("tables and arrays, which have no groups", group=self._own_group)

    @property
    def _own_group(self) -> str | None:
        return None if self.group == "posterior" else self.group
