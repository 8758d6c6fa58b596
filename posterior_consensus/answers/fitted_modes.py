"""fit_modes(): a mixture of random perturbation models, one partition for each mode."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import logsumexp

from posterior_consensus.answers.partition_loss import one_or_many, same_items
from posterior_consensus.consensus.perturbation.draws import ModelDraws, model_draws
from posterior_consensus.consensus.perturbation.mixture import Mixture, as_independent, mixture
from posterior_consensus.consensus.perturbation.probability import Mode, is_exact, log_joint
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import (
    canonical_rows,
    distinct_rows,
    is_partition,
    smallest_dtype,
)
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import InWords
from posterior_consensus.runtime.aliases import Positions
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_clusters, check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws


@dataclass(frozen=True, eq=False, repr=False)
class PartitionModes(InWords):
    """Partitions fitted by :func:`fit_modes`, in the order of their shares.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_modes, n_items), dtype int32
        Consensus partition of each mode, over the dimension ``mode``.
    shares : xarray.DataArray of shape (n_modes,), dtype float64
        Probability that a draw belongs to the mode.
    responsibilities : xarray.DataArray of shape (n_draws, n_modes), dtype float64
        Probability that each draw belongs to each mode; rows sum to 1, and draws of weight 0 have NaN. The dimension
        ``sample`` has the coordinates ``chain`` and ``draw``.
    memberships : xarray.DataArray of shape (n_modes, n_items, n_clusters), dtype float64
        Probability of each cluster for each item, over the dimension ``consensus_cluster``; 0 for clusters that a mode
        does not have.
    noise : xarray.DataArray of shape (n_modes,), dtype float64
        Probability that an item's label in a draw of the mode is random.
    label_shares : xarray.DataArray of shape (n_modes, n_numbers), dtype float64
        Probability of each number of labels in a draw of the mode, over the dimension ``n_labels``. Some labels may
        have no item.
    surprise : xarray.DataArray of shape (n_draws,), dtype float64
        Minus the logarithm of the probability of each draw's partition, in bits, with the coordinates ``chain``,
        ``draw`` and ``weight``.
    log_likelihood : float
        Lower bound of the log-likelihood.
    evidence : dict
        For each number of modes tried, the lower bound of the log-likelihood minus BIC's penalty. The number with the
        largest value is selected. It approximates a log marginal likelihood. If numbers were compared, draws count as
        an equivalent number of independent draws, which differs between pairs of successive numbers: values are those
        of one mode plus the differences of these pairs.
    trace : ndarray of shape (n_iterations,), dtype float64
        Lower bound plus log prior after each step of the last ascent; it never falls.
    converged : bool
        Whether no probability changed by more than 1e-5 in the last step.
    is_noise : xarray.DataArray of shape (n_modes, n_items), dtype bool, or None
        Whether an item is noise in the mode: alone in its cluster, and noise in at least half of the mode's runs. None
        unless runs have noise.
    """

    _figure = "strips.plot_modes"

    labels: xr.DataArray = field(metadata=stored_as.array("mode_labels", of_items=True))
    shares: xr.DataArray = field(metadata=stored_as.array("mode_share"))
    responsibilities: xr.DataArray = field(metadata=stored_as.array("mode_responsibility", without=("weight",)))
    memberships: xr.DataArray = field(metadata=stored_as.array("mode_membership", without=("consensus_cluster",)))
    noise: xr.DataArray = field(metadata=stored_as.array("mode_noise"))
    label_shares: xr.DataArray = field(metadata=stored_as.array("mode_label_share", {"n_labels": "mode_n_labels"}))
    surprise: xr.DataArray = field(metadata=stored_as.array("mode_surprise"))
    log_likelihood: float = field(metadata=stored_as.number("mode_log_likelihood"))
    evidence: dict[int, float] = field(metadata=stored_as.by_number("mode_evidence", "n_modes"))
    trace: np.ndarray = field(metadata=stored_as.values("mode_trace", "mode_step"))
    converged: bool = field(metadata=stored_as.flag("mode_converged"))
    _of_runs: ClassVar = "mode_independent"
    is_noise: xr.DataArray | None = field(default=None, metadata=stored_as.array("mode_is_noise"))

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return self.shares.size

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each mode, without noise."""
        dim = str(self.labels.dims[1])
        noise = 0 if self.is_noise is None else self.is_noise.sum(dim)
        return (self.labels.max(dim) + 1 - noise).rename("n_clusters")

    def sample(self, n: int, *, random_seed: RandomSeed = None) -> PartitionDraws:
        """Sample partitions from the fitted mixture.

        Parameters
        ----------
        n : int
            Number of partitions.
        random_seed : int, Generator, SeedSequence or None
            The same seed gives the same partitions.

        Returns
        -------
        PartitionDraws
            One chain of independent draws, over the items of the modes.

        Raises
        ------
        ValueError, TypeError
            If `n` is not a positive integer.

        Notes
        -----
        The model is that of :func:`random_perturbation_em` for one new draw, with the fitted values as parameters. A
        draw belongs to mode g with probability ``shares[g]``. It has L labels with probability ``label_shares[g]``,
        and the first K are the K clusters of the mode. Items are independent. With p = ``noise[g]`` and r_il =
        ``memberships[g, i, l]``, 0 for labels beyond the clusters, item i has label l with probability

            (1 - p) r_il + p / L.

        Only the partition is kept, not the names of the labels. Items that are uncertain in the posterior move
        independently in this model, although they may move jointly in the posterior.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
        >>> modes = pc.consensus.fit_modes(draws, 2, random_seed=1)
        >>> modes.sample(3, random_seed=2).labels
        array([[0, 0, 0, 1, 1, 1],
               [0, 0, 0, 1, 1, 1],
               [0, 1, 0, 1, 0, 1]], dtype=uint8)
        """
        rng = as_generator(random_seed)
        around = rng.choice(self.n_modes, size=check_count("n", n), p=self.shares.values)
        labels = np.empty((n, self.labels.shape[1]), smallest_dtype(int(self.label_shares["n_labels"].max())))
        for g, mode in enumerate(self._modes):
            at = np.flatnonzero(around == g)
            labels[at] = mode.sampled(at.size, rng)
        return PartitionDraws.of(canonical_rows(labels, int(labels.max()) + 1)[0], items=self._items)

    def log_prob(self, partitions: Any) -> xr.DataArray:
        """Compute the log-probability of partitions under the fitted mixture.

        Parameters
        ----------
        partitions : partition, sequence of partitions, PartitionDraws or any posterior that :func:`summarize` takes
            A partition is a result object, DataArray or label vector of shape (n_items,). For allocation
            probabilities, the sampled labels are used. For a summary, its consensus is used; pass its ``draws`` for
            its draws. Items are matched by name.

        Returns
        -------
        xarray.DataArray of shape (sample,), dtype float64
            In nats, with the coordinates ``chain`` and ``draw``, or without dimension for a single partition; -inf for
            a partition with more clusters than any fitted draw. The coordinate ``exact`` is False if the value is a
            lower bound.

        Raises
        ------
        ValueError
            If the partitions have other items, or are invalid, see :func:`as_partition_draws`.

        Notes
        -----
        Given the mode and the number L of labels, a partition with the blocks B_1 to B_k has the probability

            sum over s of prod_b prod_(i in B_b) ((1 - p) r_(i, s(b)) + p / L),

        where s assigns different labels to the blocks, and the other symbols are those of :meth:`sample`. The sum is
        exact if the partition or each mode has at most seven clusters. Otherwise it has only the terms near the best
        matching of blocks with clusters (Hungarian algorithm), and is a lower bound. The probabilities of all
        partitions sum to 1.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
        >>> modes = pc.consensus.fit_modes(draws, 2, random_seed=1)
        >>> modes.log_prob([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0], [0, 1, 2, 0, 1, 2]]).values.round(2)
        array([-0.51, -8.1 ,  -inf])
        """
        joint = self._joint(as_draws(self._listed(partitions)), is_partition(partitions))
        return _over_modes(joint).rename("log_prob").assign_attrs(unit="nats")

    def classify(self, partitions: Any) -> xr.Dataset:
        """Compute the probability of each mode for partitions, and how surprising they are compared with the draws.

        Parameters
        ----------
        partitions : partition, sequence of partitions, PartitionDraws or any posterior that :func:`summarize` takes
            As for :meth:`log_prob`.

        Returns
        -------
        xarray.Dataset
            Over the dimension ``sample``, or without it for a single partition:

            - ``responsibilities``, also over the dimension ``mode``: the probability of each mode given the partition;
              NaN if the partition is impossible under all modes;
            - ``surprise``: minus the logarithm of the partition's probability, in bits;
            - ``as_surprising``: the weighted share of the fitted draws whose surprise is at least as large. Near 0, the
              partition is not typical of the draws.

            The coordinates equal those of :meth:`log_prob`.

        Raises
        ------
        ValueError
            As :meth:`log_prob`.

        Notes
        -----
        These responsibilities follow from :meth:`log_prob`, even if it is a lower bound. The attribute
        `responsibilities` is an approximation, conditional on each draw's number of labels.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
        >>> modes = pc.consensus.fit_modes(draws, 2, random_seed=1)
        >>> classes = modes.classify([[0, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 1]])
        >>> classes["responsibilities"].values.round(2)
        array([[0.  , 1.  ],
               [0.35, 0.65]])
        >>> classes["as_surprising"].values.round(2)
        array([0.33, 0.  ])
        """
        joint = self._joint(as_draws(self._listed(partitions)), is_partition(partitions))
        total = _over_modes(joint)
        surprise = (abs(total) / np.log(2)).assign_attrs(unit="bits")
        with np.errstate(invalid="ignore"):
            responsibilities = np.exp(joint - total)
        order = np.argsort(self.surprise.values)
        at_least = np.append(np.cumsum(self.surprise["weight"].values[order][::-1])[::-1], 0.0)
        place = np.searchsorted(self.surprise.values[order], surprise.values * (1 - SAME))
        as_surprising = surprise.dims, at_least[place]
        return xr.Dataset({"responsibilities": responsibilities, "surprise": surprise, "as_surprising": as_surprising})

    @property
    def _items(self) -> Items:
        return Items.along(self.labels, str(self.labels.dims[1]))

    @property
    def _modes(self) -> list[Mode]:
        sizes = self.label_shares["n_labels"].values.tolist()
        return [
            Mode(share, memberships[:, :number], noise, dict(zip(sizes, chances, strict=True)))
            for share, memberships, number, noise, chances in zip(
                self.shares.values.tolist(),
                self.memberships.values,
                self.labels.values.max(axis=1) + 1,
                self.noise.values.tolist(),
                self.label_shares.values.tolist(),
                strict=True,
            )
        ]

    def _listed(self, partitions: Any) -> Any:
        """Convert one or several partitions to draws; return a posterior unchanged."""
        if partitions is None or isinstance(partitions, PartitionModes):
            raise TypeError(f"`partitions` must be partitions or a posterior; got {type(partitions).__name__}.")
        listed = isinstance(partitions, (list, tuple)) and all(map(is_partition, partitions))
        by_row = isinstance(partitions, xr.DataArray) and {"chain", "draw", "sample"}.isdisjoint(partitions.dims)
        if not (is_partition(partitions) or listed or by_row):
            return partitions
        given, _ = one_or_many(partitions, self._items)
        rows = np.stack([self._items.as_labels(partition, "partitions") for partition in given])
        return PartitionDraws.of(rows, items=self._items)

    def _joint(self, draws: PartitionDraws, single: bool) -> xr.DataArray:
        """Log of the joint probability of each mode and partition; over the modes alone for a single partition."""
        draws = same_items(draws, self._items, "partitions")
        coords = draws.samples.coords | {"exact": ("sample", is_exact(self._modes, draws.n_clusters))}
        joint = xr.DataArray(log_joint(self._modes, draws), coords, ("sample", "mode"))
        return joint[0].drop_vars(["chain", "draw"]) if single else joint

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the modes.

        Returns
        -------
        pandas.DataFrame
            A row for each mode, with its share, noise and number of clusters.
        """
        columns = {"share": self.shares, "noise": self.noise, "clusters": self.n_clusters}
        return pd.DataFrame(
            {name: column.values for name, column in columns.items()},
            index=pd.RangeIndex(self.n_modes, name="mode"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        clear = float((self.responsibilities.dropna("sample").max("mode") > 0.95).mean())
        last, ended = max(self.evidence), self.words.either(", not converged", ", not at a maximum yet")
        rises = "; the evidence still rises" * (1 < last == max(self.evidence, key=lambda g: self.evidence[g]))
        lines = [
            (
                self.words.draws,
                f"{len(self.responsibilities):,}, {clear:.0%} of them in one mode with probability above 0.95",
            ),
            ("log-likelihood", display.number(self.log_likelihood)),
            ("modes tried", ", ".join(f"{g} ({display.number(e)})" for g, e in self.evidence.items()) + rises),
            ("steps", f"{len(self.trace)}{'' if self.converged else ended}"),
        ]
        modes = f"{self.n_modes} mode{'s' * (self.n_modes > 1)}"
        title = f"PartitionModes: {modes} of {display.counted_items(self.labels.shape[1], self.labels.dims[1])}"
        return title, lines, self.to_dataframe()


def _over_modes(joint: xr.DataArray) -> xr.DataArray:
    """Logarithms of probabilities, summed over the modes; rounding puts none above 0."""
    return joint.reduce(logsumexp, "mode").clip(max=0.0)


def fit_modes(
    draws: Any,
    n_modes: int | Literal["auto"] = "auto",
    *,
    n_clusters: int | None = None,
    max_clusters: int | None = None,
    max_modes: int = 6,
    n_starts: int = 3,
    max_steps: int = 300,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
) -> PartitionModes:
    """Fit a mixture of random perturbation models, in which every draw is a noisy copy of one of a few partitions.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
        Posterior draws of the partition.
    n_modes : int or "auto"
        Number of partitions. Partitions that lose all their draws are removed. "auto" increases the number from 1 as
        long as `evidence` rises.
    n_clusters : int, optional
        Number of clusters of each partition. Clusters that lose all their items are removed. By default it is
        estimated, up to the largest number in any draw.
    max_clusters : int, optional
        Largest number of clusters if the number is estimated.
    max_modes : int
        Largest number of modes that "auto" tries. If it is the best one, the result says that the evidence still rises.
    n_starts : int
        Number of initial groupings of the draws.
    max_steps : int
        Largest number of steps from the best grouping.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PartitionModes
        The partitions, with their shares and noise.

    Raises
    ------
    ValueError, TypeError
        If the value of an argument is not allowed, or the draws are invalid, see :func:`as_partition_draws`.

    See Also
    --------
    random_perturbation_em : the model of one mode.
    diagnose : whether the chains agree.

    Notes
    -----
    Draw t belongs to mode g with probability omega_g. It is then a perturbation of the mode's partition with noise p_g
    [1]_, see :func:`random_perturbation_em`. Each step raises a lower bound of the log-likelihood: over the matchings
    of draws with modes, the noise and shares, the responsibilities, and the memberships, in turn. Starts group the
    draws by k-means on the leading principal coordinates of their association matrices. `evidence` is the bound minus
    BIC's penalty [2]_: half the log number of items for each cluster's share, and half the log number of draws for
    each mode's share and noise.

    Successive draws of a chain are not independent, and would support a mode for each stretch of similar draws. To
    select the number of modes, a draw therefore counts as 1 / tau, where tau is the autocorrelation time of the items'
    agreement with the mode of their draw, centred in each mode. A run of equal successive draws counts at most as
    1 + 3 p / (1 - p) draws, where p is the share of its partition among the other draws. The selected number is then
    fitted to all draws in full. Draws must be in the order of sampling.

    In this model, a mode is a group of draws that differ from a partition by noise that is equal for all items. It is
    not a draw of highest posterior density. If some items are noisier than others, or move jointly, too many modes may
    be selected: each further mode raises the log-likelihood in proportion to the number of draws, but the penalty only
    by its logarithm. Choose `n_modes` then.

    References
    ----------
    .. [1] Zhou, Dudeja and Amini (2023), Statistical guarantees for consensus clustering, ICLR 2023.
    .. [2] Schwarz (1978), Annals of Statistics 6(2), 461-464. https://doi.org/10.1214/aos/1176344136

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
    >>> modes = pc.consensus.fit_modes(draws, 2, random_seed=1)
    >>> modes.labels.values
    array([[0, 0, 0, 1, 1, 1],
           [0, 1, 0, 1, 0, 1]], dtype=int32)
    >>> modes.responsibilities.values.argmax(axis=1)
    array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    """
    given = as_draws(draws)
    draws = given.in_fixed_order()
    check_clusters(n_clusters, max_clusters)
    for name, value in (("n_starts", n_starts), ("max_steps", max_steps), ("max_modes", max_modes)):
        check_count(name, value)
    rng = as_generator(random_seed)
    used = model_draws(draws, n_clusters)
    distinct = distinct_rows(used.labels.values)[0].size
    largest = int(used.labels.n_clusters.max())
    n_labels = min(n_clusters or max_clusters or largest, largest)
    fewer = n_clusters is None and distinct > 1
    fit = partial(mixture, n_clusters=n_labels, fewer=fewer, n_starts=n_starts, most_steps=max_steps, rng=rng)
    if isinstance(n_modes, str):
        if n_modes != "auto":
            raise ValueError(f"`n_modes` must be an integer or 'auto'; got {n_modes!r}.")
        chains = draws.without_zero_weights().samples.series
        best, evidence = _selected(used, chains, fit, min(max_modes, distinct), progressbar)
    else:
        number = min(check_count("n_modes", n_modes), distinct)
        best = fit(used, number)
        evidence = {number: best.evidence}
    found = _as_modes(draws, used, best, evidence)
    of_draws = {name: getattr(found, name).isel(sample=given.own_order) for name in ("responsibilities", "surprise")}
    return replace(found, **of_draws)


def _selected(
    draws: ModelDraws,
    chains: list[Positions] | None,
    fit: Callable[..., Mixture],
    most: int,
    progressbar: bool,
) -> tuple[Mixture, dict[int, float]]:
    """Add modes as long as the evidence rises; return the fit, and the evidence of each number tried.

    Two successive numbers are compared on draws that count as independent ones given the larger number of modes.
    `chains` are the rows of each chain; None for runs, which are independent.
    """
    best = fit(draws, 1)
    evidence = {1: best.evidence}
    for number in track(range(2, most + 1), "Modes", progressbar=progressbar):
        more = fit(draws, number)
        independent = draws if chains is None else as_independent(draws, more, chains)
        one, other = fit(independent, number - 1), fit(independent, number)
        if number == 2:
            evidence[1] = one.evidence
        gain = other.evidence - one.evidence
        rises = gain > 0 and other.shares.size == number
        evidence[number] = evidence[number - 1] + (gain if rises else min(gain, 0.0))
        if not rises:
            break
        best = more
    return best, evidence


def _as_modes(draws: PartitionDraws, used: ModelDraws, fitted: Mixture, evidence: dict[int, float]) -> PartitionModes:
    """Build the record with the user's coordinates: modes by their shares, clusters by their first items."""
    order = np.argsort(-fitted.shares, kind="stable").tolist()
    widest = max(memberships.shape[1] for memberships in fitted.memberships)
    memberships = np.zeros((len(order), draws.n_items, widest))
    responsibilities = np.full((draws.n_draws, len(order)), np.nan)
    responsibilities[draws.weights > 0] = fitted.responsibilities[:, order]
    widths = [used.widths(fitted.states[g].parameters.shares.size) for g in order]
    sizes = np.unique(widths)
    label_shares = np.empty((len(order), sizes.size))
    modes = []
    for row, g in enumerate(order):
        n_clusters = fitted.memberships[g].shape[1]
        memberships[row, :, :n_clusters] = fitted.memberships[g]
        counts = np.bincount(
            np.searchsorted(sizes, widths[row]), used.counts * fitted.responsibilities[:, g], sizes.size
        )
        label_shares[row] = counts / counts.sum()
        noise = float(fitted.states[g].parameters.noise[0])
        n_labels = dict(zip(sizes.tolist(), label_shares[row].tolist(), strict=True))
        modes.append(Mode(float(fitted.shares[g]), memberships[row, :, :n_clusters], noise, n_labels))
    surprise = abs(_over_modes(xr.DataArray(log_joint(modes, draws), dims=("sample", "mode"))).values) / np.log(2)
    sample = draws.samples.coords
    labels, is_noise = memberships.argmax(axis=2).astype(np.int32), None
    if draws.has_noise:
        weights = draws.weights * np.nan_to_num(responsibilities.T)
        found = [draws.with_noise_of(row, own) < 0 for row, own in zip(labels, weights, strict=True)]
        is_noise = draws.items.array(np.stack(found), "is_noise", ("mode", ...))
    return PartitionModes(
        labels=draws.items.array(labels, "labels", ("mode", ...)),
        shares=xr.DataArray([mode.share for mode in modes], dims="mode", name="shares"),
        responsibilities=xr.DataArray(
            responsibilities, dims=("sample", "mode"), coords=sample, name="responsibilities"
        ),
        memberships=draws.items.array(memberships, "memberships", ("mode", ..., "consensus_cluster")),
        noise=xr.DataArray([mode.noise for mode in modes], dims="mode", name="noise"),
        label_shares=xr.DataArray(label_shares, {"n_labels": sizes}, ("mode", "n_labels"), "label_shares"),
        surprise=draws.samples.array(surprise, "surprise", unit="bits"),
        log_likelihood=fitted.log_likelihood,
        evidence=evidence,
        trace=np.array(fitted.trace),
        converged=fitted.converged,
        words=draws.words,
        is_noise=is_noise,
    )
