"""Records of the work of methods and bounds, one class for each kind."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from posterior_consensus import results


@dataclass(frozen=True, kw_only=True)
class Info:
    """A record of work: named numbers, words and lists of them."""

    def to_json(self) -> str:
        """Encode the record as JSON.

        Returns
        -------
        str
            Text for an attribute, which :meth:`from_json` reads.
        """
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({"kind": type(self).__name__} | values)

    @staticmethod
    def from_json(text: str) -> Info:
        """Restore a record from JSON.

        Parameters
        ----------
        text : str
            As returned by :meth:`to_json`.

        Returns
        -------
        Info
            The record, of its original class.

        Raises
        ------
        ValueError
            If the class is unknown.
        """
        values = json.loads(text)
        kind = values.pop("kind")
        kinds = {known.__name__: known for known in _with_kinds_below(Info)}
        if kind in dir(results):
            kinds[kind] = getattr(results, kind)  # its file may not be imported yet
        if kind not in kinds:
            raise ValueError(f"`info` must be of a class that is known; got {kind!r}. Import its module.")
        return kinds[kind](**values)


def _with_kinds_below(kind: type[Info]) -> list[type[Info]]:
    return [kind, *(one for below in kind.__subclasses__() for one in _with_kinds_below(below))]


@dataclass(frozen=True, kw_only=True)
class ClusterLimits(Info):
    """Requested numbers of clusters; None if the number is free."""

    n_clusters: int | None = None
    max_clusters: int | None = None


@dataclass(frozen=True, kw_only=True)
class CandidatesInfo(Info):
    """Record of a choice among candidates by their expected losses.

    Attributes
    ----------
    n_candidates : int
        Number of candidates: the distinct draws for "best_draw", all partitions for "enumeration".
    """

    n_candidates: int


@dataclass(frozen=True, kw_only=True)
class NumbersInfo(Info):
    """Record of a method that chooses the number of clusters by the expected loss.

    Attributes
    ----------
    n_clusters_tried : list of int
        Numbers of clusters that were tried.
    expected_losses : list of float
        Expected loss of the partition found for each number.
    linkage : str or None
        Linkage of "hierarchical".
    """

    n_clusters_tried: list[int] | None = None
    expected_losses: list[float] | None = None
    linkage: str | None = None


@dataclass(frozen=True, kw_only=True)
class FitInfo(NumbersInfo):
    """Record of a method that optimizes its own objective in steps.

    Attributes
    ----------
    objective : float
        Objective of the result: expected distance ("align_and_vote"), expected Binder loss ("boem"), utility ("kcc"),
        summed impurity ("impurity"), log-likelihood ("lange_buhmann"), log-posterior density ("rpm_em"), or squared
        distance to the PSM ("nmf").
    n_iter : int
        Number of steps to the result.
    converged : bool
        Whether the steps converged.
    trace : list of float
        Objective after each step.
    objectives : list of float or None
        Objective of every start of "align_and_vote", "impurity" and "rpm_em".
    """

    objective: float
    n_iter: int
    converged: bool
    trace: list[float]
    objectives: list[float] | None = None

    @classmethod
    def of(cls, trace: list[float], converged: bool, n_iter: int | None = None, **more: Any) -> Self:
        """Build the record of a run from its trace.

        Parameters
        ----------
        trace : list of float
            Objective after each step; the last value is the objective of the result.
        converged : bool
            Whether the steps converged.
        n_iter : int, optional
            Number of steps, by default the length of the trace.
        **more
            Fields of a subclass.

        Returns
        -------
        FitInfo
            The record.
        """
        n_iter = len(trace) if n_iter is None else n_iter
        return cls(objective=trace[-1], n_iter=n_iter, converged=converged, trace=trace, **more)
