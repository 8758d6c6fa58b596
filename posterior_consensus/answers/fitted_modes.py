"""fit_modes(): the partitions around which the draws are, if they are around several."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import logsumexp

from posterior_consensus.answers.partition_loss import one_or_many, same_items
from posterior_consensus.consensus.perturbation.draws import ModelDraws, model_draws
from posterior_consensus.consensus.perturbation.mixture import Mixture, mixture
from posterior_consensus.consensus.perturbation.probability import Mode, is_exact, log_joint
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.partitions import canonical_rows, distinct_rows, is_partition, smallest_dtype
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.storage import Stored
from posterior_consensus.runtime.arguments import RandomSeed, as_generator, check_clusters, check_count
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.door import as_draws


@dataclass(frozen=True, eq=False, repr=False)
class PartitionModes(Stored):
    """Partitions fitted by :func:`fit_modes`, in the order of their shares.

    Attributes
    ----------
    labels : xarray.DataArray of shape (n_modes, n_items), dtype int32
        Consensus partition of each mode, over the dimension ``mode``.
    shares : xarray.DataArray of shape (n_modes,), dtype float64
        Probability that a draw is around the mode.
    responsibilities : xarray.DataArray of shape (n_draws, n_modes), dtype float64
        Probability of each draw, over the dimension ``sample`` with the coordinates ``chain`` and ``draw``, to be
        around each mode; rows sum to 1. NaN for those of weight 0.
    memberships : xarray.DataArray of shape (n_modes, n_items, n_clusters), dtype float64
        Probability of each cluster, over the dimension ``consensus_cluster``; 0 for those that a mode does not have.
    noise : xarray.DataArray of shape (n_modes,), dtype float64
        Probability that an item's label in a draw around the mode is random.
    label_shares : xarray.DataArray of shape (n_modes, n_numbers), dtype float64
        Probability that a draw around the mode has so many labels, over the dimension ``n_labels``; some labels may
        have no item.
    surprise : xarray.DataArray of shape (n_draws,), dtype float64
        Minus the logarithm of the probability of each draw's partition, in bits, with the coordinates ``chain``,
        ``draw`` and ``weight``.
    log_likelihood : float
        Lower bound of the log-likelihood.
    evidence : dict
        The log-likelihood less BIC's cost of each number of modes that was tried; the largest was taken.
    trace : ndarray of shape (n_iterations,), dtype float64
        Lower bound and logarithm of the prior after each step of the last climb; it does not fall.
    converged : bool
        Whether no probability changed by more than 1e-5 in the last step.
    """

    _figure = "consensus.plot_modes"

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

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return self.shares.size

    @property
    def n_clusters(self) -> xr.DataArray:
        """Number of clusters of each mode."""
        return (self.labels.max(str(self.labels.dims[1])) + 1).rename("n_clusters")

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
        The model is that of :func:`random_perturbation_em` for one new draw, with the fitted values in place of the
        parameters. A draw is around mode g with the probability ``shares[g]``. It has L labels with the probability
        ``label_shares[g]``, of which the first K stand for the K clusters of the mode. Each item, independently of the
        others, gets any of the L labels with the probability p = ``noise[g]``, and else the label of cluster k with
        the probability r_ik = ``memberships[g, i, k]``: in total that of label l is (1 - p) r_il + p / L, where r_il is
        0 for labels that stand for no cluster. Then the names of the labels are forgotten.

        Items that are uncertain in the posterior move independently here, although they may move together there.

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
        """Logarithm of the probability of partitions under the fitted mixture, from which :meth:`sample` draws.

        Parameters
        ----------
        partitions : partition, sequence of partitions, PartitionDraws or any posterior that :func:`summarize` takes
            A partition is a result object, DataArray or label vector of shape (n_items,). Of allocation probabilities
            the sampled labels are used, and of a summary its consensus; pass its ``draws`` for those. Items are matched
            by name.

        Returns
        -------
        xarray.DataArray of shape (sample,), dtype float64
            In nats, with the coordinates ``chain`` and ``draw``, or without dimension for a single partition; -inf for
            a partition of more clusters than any draw that the modes were fitted to. The coordinate ``exact`` is False
            where the value is a lower bound.

        Raises
        ------
        ValueError
            If the partitions are of other items, or invalid as :func:`as_partition_draws` says.

        Notes
        -----
        A partition with the blocks B_1 to B_k has, given the mode and the number L of labels, the probability

            sum over s of prod_b prod_(i in B_b) ((1 - p) r_(i, s(b)) + p / L),

        where s gives each block a label of its own, and the other symbols are those of :meth:`sample`. The sum over all
        s is exact if the partition or each mode has at most seven clusters, whatever L: it is taken block by block
        over the sets of labels that the blocks so far have. If both have more, only those s count that match most of
        the blocks with clusters in the best way (Hungarian algorithm), which gives a lower bound. The probabilities of
        all partitions of the items sum to 1.

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
        """Find the mode that partitions are around, and how surprising they are next to the draws.

        Parameters
        ----------
        partitions : partition, sequence of partitions, PartitionDraws or any posterior that :func:`summarize` takes
            As for :meth:`log_prob`.

        Returns
        -------
        xarray.Dataset
            Over the dimension ``sample``, or without it for a single partition:

            - ``responsibilities``, over the dimension ``mode`` too: the probability of each mode given the partition;
              NaN if the partition is impossible under all of them;
            - ``surprise``: minus the logarithm of the partition's probability, in bits;
            - ``as_surprising``: the share, by weight, of the draws that the modes were fitted to whose surprise is at
              least as large. If it is near 0, the partition is not typical of them.

            Coordinates are those of :meth:`log_prob`.

        Raises
        ------
        ValueError
            As :meth:`log_prob`.

        Notes
        -----
        The responsibilities of the fit itself are approximate, and given each draw's number of labels. Those here
        follow from :meth:`log_prob`, also if that is a lower bound.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> draws = [[0, 0, 0, 1, 1, 1]] * 6 + [[0, 1, 0, 1, 0, 1]] * 3
        >>> modes = pc.consensus.fit_modes(draws, 2, random_seed=1)
        >>> found = modes.classify([[0, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 1]])
        >>> found["responsibilities"].values.round(2)
        array([[0.  , 1.  ],
               [0.35, 0.65]])
        >>> found["as_surprising"].values.round(2)
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
                self.n_clusters.values,
                self.noise.values.tolist(),
                self.label_shares.values.tolist(),
                strict=True,
            )
        ]

    def _listed(self, partitions: Any) -> Any:
        """One or several partitions as draws; a posterior as it is."""
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
        """Logarithms of the probability of each mode and partition, over the modes alone for a single partition."""
        draws = same_items(draws, self._items, "partitions")
        coords = draws.samples.coords | {"exact": ("sample", is_exact(self._modes, draws.n_clusters))}
        joint = xr.DataArray(log_joint(self._modes, draws), coords, ("sample", "mode"))
        return joint[0].drop_vars(["chain", "draw"]) if single else joint

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each mode: its share, noise and number of clusters."""
        columns = {"share": self.shares, "noise": self.noise, "clusters": self.n_clusters}
        return pd.DataFrame(
            {name: column.values for name, column in columns.items()},
            index=pd.RangeIndex(self.n_modes, name="mode"),
        )

    def _parts(self) -> tuple[str, list[tuple[str, str]], pd.DataFrame]:
        sure = float((self.responsibilities.dropna("sample").max("mode") > 0.95).mean())
        last = max(self.evidence)
        rises = "; the evidence still rises" * (1 < last == max(self.evidence, key=lambda g: self.evidence[g]))
        facts = [
            ("draws", f"{len(self.responsibilities)}, {sure:.0%} of them in one mode with probability above 0.95"),
            ("log-likelihood", display.number(self.log_likelihood)),
            ("modes tried", ", ".join(f"{g} ({display.number(e)})" for g, e in self.evidence.items()) + rises),
            ("steps", f"{len(self.trace)}{'' if self.converged else ', not converged'}"),
        ]
        modes = f"{self.n_modes} mode{'s' * (self.n_modes > 1)}"
        title = f"PartitionModes: {modes} of {self.labels.shape[1]} items ({self.labels.dims[1]})"
        return title, facts, self.to_dataframe()


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
    """Fit a mixture of random perturbation models: every draw is a noisy copy of one of a few partitions.

    Parameters
    ----------
    draws : PartitionDraws or any posterior that :func:`summarize` takes
    n_modes : int or "auto"
        Number of partitions, fewer where some lose all their draws; "auto" raises it from 1 as long as that raises the
        evidence.
    n_clusters : int, optional
        Number of clusters of each partition; those that lose all their items are left out. By default it is found,
        up to the largest number in any draw.
    max_clusters : int, optional
        Largest number of clusters if the number is estimated.
    max_modes : int
        Largest number of modes that "auto" tries. If it is the best one, the result says that the evidence still rises.
    n_starts : int
        Number of groupings of the draws to start from.
    max_steps : int
        Largest number of steps from the best of them.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result.
    progressbar : bool
        Whether to show progress if the work takes more than a second.

    Returns
    -------
    PartitionModes

    Raises
    ------
    ValueError, TypeError
        If an argument's value is not among those allowed, or the draws are invalid as :func:`as_partition_draws` says.

    See Also
    --------
    random_perturbation_em : the model of one mode.
    diagnose : whether the chains agree.

    Notes
    -----
    Draw t is from mode g with probability omega_g, and then a perturbation of its partition [1]_ as
    :func:`random_perturbation_em` tells, with the noise p_g. The steps raise a lower bound of the log-likelihood in
    turn over the matchings of every draw with every mode, the noise and the shares, the responsibilities, and the
    memberships, to which each draw's votes count as much as the mode is responsible for it. The starts group the draws
    by k-means on the leading principal coordinates of their association matrices: single draws may be too noisy to be
    near others of their mode. The evidence is the bound less BIC's penalty [2]_: half the logarithm of the number of
    items for each cluster's share, and of the number of draws for each mode's share and noise.

    A mode is a group of draws that differ from a partition by noise that hits all items alike. If some items are
    noisier than others, or move together, too many modes may fit better: each further one then raises the
    log-likelihood in proportion to the number of draws, and the penalty by its logarithm only. Choose `n_modes` then.

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
    draws = as_draws(draws)
    check_clusters(n_clusters, max_clusters)
    for name, value in (("n_starts", n_starts), ("max_steps", max_steps), ("max_modes", max_modes)):
        check_count(name, value)
    rng = as_generator(random_seed)
    used = model_draws(draws, n_clusters)
    distinct = distinct_rows(used.labels.values)[0].size
    if isinstance(n_modes, str):
        if n_modes != "auto":
            raise ValueError(f"`n_modes` must be an integer or 'auto'; got {n_modes!r}.")
        numbers = range(1, min(max_modes, distinct) + 1)
    else:
        most = min(check_count("n_modes", n_modes), distinct)
        numbers = range(most, most + 1)
    largest = int(used.labels.n_clusters.max())
    tried: list[Mixture] = []
    for number in track(numbers, "Modes", progressbar=progressbar):
        found = mixture(
            used,
            number,
            min(n_clusters or max_clusters or largest, largest),
            fewer=n_clusters is None and distinct > 1,
            n_starts=n_starts,
            most_steps=max_steps,
            rng=rng,
        )
        tried.append(found)
        if len(tried) > 1 and tried[-1].evidence <= tried[-2].evidence:
            break
    best = max(tried, key=lambda found: found.evidence)
    evidence = {number: found.evidence for number, found in zip(numbers, tried, strict=False)}
    return _as_modes(draws, used, best, evidence)


def _as_modes(draws: PartitionDraws, used: ModelDraws, found: Mixture, evidence: dict[int, float]) -> PartitionModes:
    """Dress a mixture in the user's coordinates, the modes by their shares, the clusters by their first items."""
    order = np.argsort(-found.shares, kind="stable").tolist()
    widest = max(memberships.shape[1] for memberships in found.memberships)
    memberships = np.zeros((len(order), draws.n_items, widest))
    responsibilities = np.full((draws.n_draws, len(order)), np.nan)
    responsibilities[draws.weights > 0] = found.responsibilities[:, order]
    widths = [used.widths(found.states[g].parameters.shares.size) for g in order]
    sizes = np.unique(widths)
    label_shares = np.empty((len(order), sizes.size))
    modes = []
    for row, g in enumerate(order):
        n_clusters = found.memberships[g].shape[1]
        memberships[row, :, :n_clusters] = found.memberships[g]
        counts = np.bincount(
            np.searchsorted(sizes, widths[row]), used.counts * found.responsibilities[:, g], sizes.size
        )
        label_shares[row] = counts / counts.sum()
        noise = float(found.states[g].parameters.noise[0])
        n_labels = dict(zip(sizes.tolist(), label_shares[row].tolist(), strict=True))
        modes.append(Mode(float(found.shares[g]), memberships[row, :, :n_clusters], noise, n_labels))
    surprise = abs(_over_modes(xr.DataArray(log_joint(modes, draws), dims=("sample", "mode"))).values) / np.log(2)
    dims = ("mode", draws.items.dim, "consensus_cluster")
    sample = draws.samples.coords
    return PartitionModes(
        labels=draws.items.partition_array(memberships.argmax(axis=2).astype(np.int32), "mode", "labels"),
        shares=xr.DataArray([mode.share for mode in modes], dims="mode", name="shares"),
        responsibilities=xr.DataArray(
            responsibilities, dims=("sample", "mode"), coords=sample, name="responsibilities"
        ),
        memberships=xr.DataArray(memberships, dims=dims, coords=draws.items.coords, name="memberships"),
        noise=xr.DataArray([mode.noise for mode in modes], dims="mode", name="noise"),
        label_shares=xr.DataArray(label_shares, {"n_labels": sizes}, ("mode", "n_labels"), "label_shares"),
        surprise=draws.samples.array(surprise, "surprise", unit="bits"),
        log_likelihood=found.log_likelihood,
        evidence=evidence,
        trace=np.array(found.trace),
        converged=found.converged,
    )
