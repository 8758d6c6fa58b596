"""Sensitivity of the partition to the prior, by importance weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.consensus.methods import check_no_method
from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.expectation import doubt_of_losses, draw_losses
from posterior_consensus.ensemble.importance import Importance, importance
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.ensemble.samples import Samples
from posterior_consensus.ensemble.switching import numbered_like
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.priors.record import PartitionPrior, Sizes, median, sizes_of
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.runtime.aliases import Flags, Floats
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_above
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING
from posterior_consensus.sources.containers import has_groups
from posterior_consensus.sources.conversion import find_source, opened
from posterior_consensus.sources.parameters import has_group, log_density

_POWERS = (0.8, 1.25)
_SMALL = 0.05  # relative excess loss that counts as small
_COLUMNS = (
    "concentration",
    "pareto_k",
    "rare",
    "unseen",
    "effective_draws",
    "n_clusters",
    "n_clusters_mcse",
    "partition_clusters",
    "expected_loss",
    "excess_loss",
    "excess_mcse",
    "ess",
    "n_moved",
)


@dataclass(frozen=True, eq=False, repr=False)
class PriorSensitivity(Stored):
    """The consensus partition under one prior, evaluated under others; made by :func:`prior_sensitivity`.

    Attributes
    ----------
    partition : xarray.DataArray of shape (n_items,), dtype int32
        The partition that is evaluated: the given one or, by default, the consensus under the prior of the draws.
    partitions : xarray.DataArray of shape (n_alternatives, n_items), dtype int32
        The best partition found under each alternative, over ``alternative``; -1 if the weights are unreliable.
    table : xarray.Dataset
        Over ``alternative``. Reliability of the weights, see Notes: ``pareto_k``; ``rare``, the share of the weight at
        rare ratios; ``unseen``, the share to expect at numbers of clusters beyond those of the draws;
        ``effective_draws``, Kish's number times the share of draws that are independent. ``concentration`` is the
        alternative's concentration, or its median under a hyperprior, NaN for a power or another family. The other
        columns are NaN if the weights are unreliable. ``n_clusters`` is the posterior mean number of clusters, with the
        error ``n_clusters_mcse``.
        ``partition_clusters`` is the number of clusters of the best partition. ``expected_loss`` refers to
        `partition`. ``excess_loss`` is the expected loss of `partition` minus the expected loss of the best partition,
        with the error ``excess_mcse`` and effective sample size ``ess``. ``n_moved`` is the number of items whose
        cluster differs between the two.
    prior : str
        The prior of the draws.
    concentration : float or None
        The concentration under that prior; its median under a hyperprior.
    n_clusters, n_clusters_mcse : float
        Posterior mean of the number of clusters under the prior of the draws, and its Monte Carlo standard error.
    loss : PartitionLoss
        The loss.
    n_draws : int
        Number of draws.
    doubt : str or None
        How the chains disagree, by the R-hat of the losses or of the number of clusters, as continuation of "The
        chains". None if these show no disagreement.
    """

    _figure = "paths.plot_prior_sensitivity"

    partition: xr.DataArray = field(metadata=stored_as.array("sensitivity_partition", of_items=True))
    partitions: xr.DataArray = field(
        metadata=stored_as.array("sensitivity_partitions", {"alternative": "other_prior"}, of_items=True)
    )
    table: xr.Dataset = field(metadata=stored_as.table("sensitivity_{}", _COLUMNS, {"alternative": "other_prior"}))
    prior: str = field(metadata=stored_as.attribute("sensitivity_prior"))
    concentration: float | None = field(metadata=stored_as.number("sensitivity_own_concentration"))
    n_clusters: float = field(metadata=stored_as.number("sensitivity_own_n_clusters"))
    n_clusters_mcse: float = field(metadata=stored_as.number("sensitivity_own_n_clusters_mcse"))
    loss: PartitionLoss = field(metadata=stored_as.loss("sensitivity_"))
    n_draws: int = field(metadata=stored_as.attribute("sensitivity_draws"))
    doubt: str | None = field(default=None, metadata=stored_as.attribute("sensitivity_doubt"))

    @property
    def is_reliable(self) -> Flags:
        """Whether the weights are reliable, for each alternative."""
        known: Flags = ~np.isnan(self.table["n_clusters"].values)
        return known

    @property
    def moved(self) -> dict[str, list[Any]]:
        """Items that change clusters, after matching, under each alternative with reliable weights."""
        labels, dim = self.partition.values, self.partition.dims[0]
        names = self.partition[dim].values if dim in self.partition.coords else np.arange(labels.size)
        each = zip(self.table["alternative"].values, self.partitions.values, self.is_reliable, strict=True)
        return {
            str(name): names[numbered_like(labels, other) != other].tolist() for name, other, known in each if known
        }

    @property
    def verdict(self) -> str:
        """Whether the partition depends on the prior, in one or two sentences; before it, whether chains disagree."""
        return self._dependence if self.doubt is None else f"The chains {self.doubt}. {self._dependence}"

    @property
    def _dependence(self) -> str:
        """Whether the partition depends on the prior."""
        names, excess = self.table["alternative"].values, self.table["excess_loss"].values
        unknown = [str(name) for name in names[~self.is_reliable]]
        cannot = f"the weights are unreliable under {display.listed(unknown, 3)}: sample under it" if unknown else ""
        if not self.is_reliable.any():
            return f"{display.capitalized(cannot)}."
        noise, expected = np.nan_to_num(self.table["excess_mcse"].values), self.table["expected_loss"].values
        matters = excess > np.maximum(2 * noise, _SMALL * expected)
        worst = int(np.nanargmax(np.where(matters, excess, np.nan) if matters.any() else excess))
        row = self.table.isel(alternative=worst)
        error = float(row["excess_mcse"])
        loses = display.with_error(float(excess[worst]), error, float(row["ess"]), unit=self.loss.unit)
        reliable = " with reliable weights" if unknown else ""
        if excess[worst] <= ROUNDING:
            words = f"The partition is the best one found under every alternative{reliable}"
        elif not matters.any():
            words = f"The partition is nearly the best one found under every alternative{reliable}"
        else:
            words = "The partition depends on the prior"
        if excess[worst] > ROUNDING:
            moved = int(row["n_moved"])
            words += (
                f": under {names[worst]} it loses {loses} more than the best one, and {moved:,} of "
                f"{self.partition.size:,} items {'changes' if moved == 1 else 'change'} clusters"
            )
        return f"{words}. {display.capitalized(cannot)}." if unknown else f"{words}."

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the alternatives.

        Returns
        -------
        pandas.DataFrame
            A row for each alternative.
        """
        return self.table.to_dataframe()[list(_COLUMNS)]

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        own = display.with_error(self.n_clusters, self.n_clusters_mcse)
        lines = [
            ("verdict", self.verdict),
            ("loss", display.name_and_unit(self.loss)),
            ("clusters", f"{own} expected under {self.prior}"),
            ("draws", f"{self.n_draws:,}"),
            *display.about_errors(self.table["ess"]),
        ]
        title = f"PriorSensitivity: {self.prior} and {display.counted(self.is_reliable.size, 'alternative')}"
        shown = self.to_dataframe().drop(columns=["concentration", "expected_loss", "ess"])
        return title, lines, shown


class _Alternative(NamedTuple):
    """An alternative: the log density ratio (N,) of each draw, and its concentration if it has the same family.

    `steps` has the changes of the log ratio to one cluster fewer and one more, or 0 if unknown.
    """

    log_ratio: Floats
    concentration: float = np.nan
    steps: Floats | float = 0.0


def prior_sensitivity(
    draws: Any,
    prior: PartitionPrior | str | Sequence[str] | None = None,
    *,
    alternatives: Mapping[Any, PartitionPrior] | None = None,
    powers: Sequence[float] | None = None,
    partition: Any = None,
    loss: str | PartitionLoss | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> PriorSensitivity:
    """Evaluate the consensus partition under other priors, without sampling again.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition. A prior on labels, :func:`priors.stick_breaking`, needs labels as sampled.
    prior : PartitionPrior, name, list of names, or None
        The prior on partitions under which the draws were sampled, such as ``priors.crp(1.0)``. Or names of variables
        in the group ``log_prior``; None takes all of them. With names, the alternatives are `powers` of this prior. If
        the posterior has the group ``log_likelihood``, powers of the likelihood are added.
    alternatives : dict of PartitionPrior, optional
        Alternative priors by name.
    powers : sequence of float, optional
        Powers to which the prior is raised; by default 0.8 and 1.25 if there are no `alternatives`, else none.
    partition : result object, DataArray or label vector of shape (n_items,), optional
        The partition to evaluate; by default the consensus under `prior`.
    loss : str or PartitionLoss, optional
        By default the loss of `partition` if it has one, else "vi".
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.
    **options
        Further arguments of :func:`consensus_partition`, such as ``n_starts``.

    Returns
    -------
    PriorSensitivity
        Expected and excess losses under each alternative, and a verdict.

    Raises
    ------
    ValueError
        If `draws` are independent runs, which have no prior; if a prior excludes some draws, priors on labels and on
        partitions are mixed, a group is missing, or the draws are invalid, see :func:`as_partition_draws`.
    TypeError
        If `prior` has another type, or an alternative is not a PartitionPrior.

    See Also
    --------
    PriorSensitivity.plot : the figure.
    reweight : the draws of one alternative, for every other function.

    Notes
    -----
    Under the alternative prior q, draw t gets the weight q(z_t) / p(z_t), where p is `prior`. For the power g of p, the
    weight is p(z_t)^(g - 1) [1]_. Weights are Pareto-smoothed as in :func:`reweight`. The rest of the model does not
    change. Weights are unreliable, and the results NaN, in three cases:

    - There are fewer than four effective draws per chain.
    - ``unseen`` exceeds a third: draws with one cluster more than all draws, or one fewer, would have this share of the
      weight. Their number continues those of the last two numbers of clusters geometrically, and is one to three
      effective draws. Their log ratio is extrapolated by a parabola of the number of clusters. Standard errors include
      them.
    - The Pareto k-hat exceeds min(1 - 1 / log10(S), 0.7) for S draws, or smoothing moves more than 5% of the weight;
      and ``rare`` exceeds 5%. A ratio is rare if the chains enter its interval, of width 0.1 of the logarithm about the
      parabola, fewer than five times, and the interval has at most half of the draws.

    The share of draws that are independent is estimated from the number of clusters.

    Every partition found is evaluated under every alternative. The verdict treats an excess loss as small if it is at
    most two standard errors, or at most 5% of the expected loss. Allocation probabilities only serve to sample labels,
    because they depend on the prior of the draws.

    References
    ----------
    .. [1] Kallioinen, Paananen, Buerkner and Vehtari (2024), Statistics and Computing 34, 57.
       https://doi.org/10.1007/s11222-023-10366-5

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 2]] * 50
    >>> others = {"half": pc.priors.crp(0.5), "double": pc.priors.crp(2.0)}
    >>> sensitivity = pc.prior_sensitivity(draws, pc.priors.crp(1.0), alternatives=others, random_seed=1)
    >>> sensitivity.table["n_clusters"].values.round(1)
    array([1.7, 2.3])
    >>> sensitivity.verdict
    'The partition is the best one found under every alternative.'
    """
    check_no_method(loss)
    with opened(draws) as (data, where):
        source = find_source(data, where)
        given = source.source.as_draws().in_fixed_order()
        if not given.samples.series:
            raise ValueError(
                f"`draws` must be draws under a prior; got {given.n_draws} independent runs, which have none. To see "
                "how a setting of the program changes the partition, give as_layers the runs of each value."
            )
        others = _alternatives(data, source.labels, given, prior, alternatives, powers)
    taken = given.labels_only()
    record, rng = as_loss(loss, partition, kind=PartitionLoss), as_generator(random_seed)

    def best_of(samples: Samples) -> Labels:
        posterior = replace(taken, samples=samples)
        best = consensus_partition(posterior, loss=record, random_seed=rng, progressbar=False, **options)
        return canonical_labels(best.labels.values)

    evaluated = best_of(taken.samples) if partition is None else taken.as_labels(partition)
    most = min(taken.n_items, getattr(prior, "n_labels", None) or taken.n_items)
    weighted = [importance(taken.samples, one.log_ratio, taken.n_clusters, most, one.steps) for one in others.values()]
    reliable = [one for one in track(weighted, "Priors", progressbar=progressbar) if one.is_reliable]
    found = np.stack([evaluated, *(best_of(one.samples) for one in reliable)])
    losses, clusters = draw_losses(found, taken, record), taken.n_clusters.astype(np.float64)
    names, dim = [str(name) for name in others], "alternative"
    partitions, rows = np.full((len(names), taken.n_items), -1, np.int32), []
    for k, (one, other) in enumerate(zip(weighted, others.values(), strict=True)):
        row: tuple[Any, ...] = (np.nan,) * len(_COLUMNS[5:])
        if one.is_reliable:
            partitions[k], row = _evaluated(one, found, losses, clusters)
        rows.append((other.concentration, one.pareto_k, one.rare, one.unseen, one.effective_draws, *row))
    columns = {name: (dim, column) for name, column in zip(_COLUMNS, np.array(rows).T, strict=True)}
    return PriorSensitivity(
        partition=taken.items.array(evaluated, "partition"),
        partitions=taken.items.array(partitions, "partitions", (dim, ...), {dim: names}),
        table=xr.Dataset(columns, {dim: names}),
        prior=repr(prior) if isinstance(prior, PartitionPrior) else "log_prior",
        concentration=median(prior.concentration) if isinstance(prior, PartitionPrior) else None,
        n_clusters=float(taken.samples.mean(clusters)),
        n_clusters_mcse=float(taken.samples.mcse(clusters)),
        loss=record,
        n_draws=taken.n_draws,
        doubt=doubt_of_losses(taken, losses[0]),
    )


def _evaluated(one: Importance, found: Labels, losses: Floats, clusters: Floats) -> tuple[Labels, tuple[Any, ...]]:
    """The best of the partitions found under an alternative, and its columns of the table from `n_clusters` on."""
    samples, numbers = one.samples, one.beyond.numbers
    expected, mean = samples.mean(losses), samples.mean(clusters)
    best = int(expected.argmin())
    if expected[0] <= expected[best] + ROUNDING:
        best = 0
    excess = losses[0] - losses[best]
    mean_excess = samples.mean(excess) if best else np.zeros(())
    nearest = np.clip(numbers, clusters.min(), clusters.max())  # draws most similar to those that are missing
    of_nearest = np.array([excess[clusters == number].mean() for number in nearest])
    error, size = samples.mcse_and_ess(excess)
    widened = one.widened(error, mean_excess, of_nearest)
    return found[best], (
        mean,
        one.widened(samples.mcse(clusters), mean, numbers),
        found[best].max() + 1,
        expected[0],
        mean_excess,
        widened,
        size * np.square(error / widened) if widened > 0 else size,
        np.sum(numbered_like(found[0], found[best]) != found[best]),
    )


def _alternatives(
    data: Any,
    as_sampled: xr.DataArray | None,
    draws: PartitionDraws,
    prior: Any,
    alternatives: Mapping[Any, PartitionPrior] | None,
    powers: Any,
) -> dict[str, _Alternative]:
    """Alternatives by name, with their log density ratios."""
    exponents = [check_above("powers", one, 0.0) for one in (powers or (() if alternatives else _POWERS))]
    if not isinstance(prior, PartitionPrior):
        return _powers_of_groups(data, draws, prior, alternatives, exponents)
    sizes = sizes_of(prior, as_sampled, draws)
    log_prior = prior.of_sizes(sizes)
    if not np.all(np.isfinite(log_prior[draws.weights > 0])):
        raise ValueError(
            f"`prior` must allow every draw; under {prior} some have probability 0. Give the prior under which they "
            "were sampled."
        )
    is_constant = prior.n_labels is None and np.ptp(draws.n_clusters) == 0
    steps = _steps(sizes, prior.of_sizes) if is_constant else np.zeros(2)
    by_name = {f"prior^{one:g}": _Alternative((one - 1.0) * log_prior, steps=(one - 1.0) * steps) for one in exponents}
    if not isinstance(alternatives, (Mapping, type(None))):
        raise TypeError(f"`alternatives` must be a dict of priors by name; got {type(alternatives).__name__}.")
    for name, other in (alternatives or {}).items():
        if not isinstance(other, PartitionPrior):
            raise TypeError(f"`alternatives` must hold priors such as priors.crp(2.0); got {other!r} for {name!r}.")
        if (other.n_labels is None) != (prior.n_labels is None):
            raise ValueError(
                f"`alternatives` must be priors on labels if `prior` is one, and else on partitions; got {other} "
                f"and {prior}. If the last sticks stay empty, take priors.crp for stick_breaking."
            )
        ratio = other.of_sizes(sizes_of(other, as_sampled, draws)) - log_prior
        if np.all(ratio == -np.inf):
            raise ValueError(f"`alternatives` must allow some draws; {name!r}, {other}, excludes all. Leave it out.")
        same = other.family == prior.family
        more = _steps(sizes, other.of_sizes) - steps if is_constant else steps
        by_name[str(name)] = _Alternative(ratio, median(other.concentration) if same else np.nan, more)
    return by_name


def _steps(sizes: Sizes, log_prior: Callable[[Sizes], Floats]) -> Floats:
    """Changes of the log prior of the first draw to one cluster fewer, the two smallest in one, and to one item alone.

    If all draws have equally many clusters, they do not show how the ratio depends on that number.
    """
    own = np.sort(sizes.values[: sizes.starts[1]])
    fewer, more = np.append(own[2:], own[:2].sum()), np.append(own[:-1], [max(own[-1] - 1, 1), 1])
    starts = np.cumsum([0, fewer.size, own.size, more.size])
    at_fewer, at_own, at_more = log_prior(Sizes(np.concatenate([fewer, own, more]), starts, sizes.n_items))
    return np.array([at_fewer, at_more]) - at_own


def _powers_of_groups(
    data: Any, draws: PartitionDraws, names: Any, alternatives: Any, exponents: list[float]
) -> dict[str, _Alternative]:
    """Alternatives that are powers of the prior and, if it is stored, of the likelihood."""
    if not has_groups(data) or not isinstance(names, (str, list, tuple, type(None))):
        raise TypeError(
            "`prior` must be a PartitionPrior such as priors.crp(1.0), or names of variables of the group log_prior if "
            f"`draws` have one; got {names!r}, and `draws` of type {type(data).__name__}."
        )
    if alternatives is not None:
        raise ValueError(
            "`alternatives` need a `prior` that can be computed, such as priors.crp(1.0); got names of variables or "
            "None."
        )
    names = [names] if isinstance(names, str) else names
    logs = {"prior": log_density(data, "log_prior", draws, names)}
    if has_group(data, "log_likelihood"):
        logs["likelihood"] = log_density(data, "log_likelihood", draws, None)
    return {f"{what}^{one:g}": _Alternative((one - 1.0) * values) for what, values in logs.items() for one in exponents}
