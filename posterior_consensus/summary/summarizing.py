"""summarize(): all results to report, from one call."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, overload

from posterior_consensus.consensus.methods import check_no_method
from posterior_consensus.consensus.partition import check_options
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.losses.lookup import as_loss_of_draws
from posterior_consensus.losses.record import NoiseLoss, PartitionLoss
from posterior_consensus.runtime.arguments import RandomSeed, check_between
from posterior_consensus.runtime.executor import Clock
from posterior_consensus.sources.conversion import opened
from posterior_consensus.sources.where import Where
from posterior_consensus.summary.layers import LayersSummary, summarize_layers
from posterior_consensus.summary.pairs import PairsSummary, summarize_pairs
from posterior_consensus.summary.steps import SEARCH, consensus_within, summary_of
from posterior_consensus.summary.summary import Posterior, Summary, read_posterior

_PROB = 0.95  # of the credible ball


@overload
def summarize(
    draws: Layers,
    *,
    loss: str | PartitionLoss | NoiseLoss | None = None,
    prob: float = _PROB,
    modes: bool = True,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> LayersSummary: ...


@overload
def summarize(
    draws: ScoredPairs | PairsSummary,
    *,
    loss: str | PartitionLoss | None = None,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> PairsSummary: ...


@overload
def summarize(
    draws: Any,
    var_name: str | None = None,
    *,
    model: Any = None,
    loss: str | PartitionLoss | NoiseLoss | None = None,
    prob: float = _PROB,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    modes: bool = True,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> Summary: ...


def summarize(
    draws: Any,
    var_name: str | None = None,
    *,
    model: Any = None,
    loss: str | PartitionLoss | NoiseLoss | None = None,
    prob: float = _PROB,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    modes: bool = True,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> Summary | LayersSummary | PairsSummary:
    """Summarize a posterior of partitions: consensus partition, uncertainty, optimality and convergence.

    Parameters
    ----------
    draws : InferenceData, DataTree, Dataset, path, or what as_partition_draws() or as_allocation_probabilities() takes
        The posterior. Labels or allocation probabilities are found automatically. If it has both for one allocation,
        the probabilities are used, and `source` reports it. If each draw has several partitions, pass the result of
        :func:`as_layers`. Scored pairs of records are what :func:`as_pair_similarity` makes of a table of pairs, or
        such a table or its file with splink's columns.
    var_name : str, optional
        Name of the variable of labels or allocation probabilities; with `model`, of the mixture.
    model : pymc.Model, optional
        PyMC model of a posterior with marginalized labels; see :func:`allocation_probabilities`.
    loss : str, PartitionLoss or NoiseLoss, optional
        Loss whose posterior expectation the consensus minimizes; by default "vi", or "ballet" for runs that call
        items noise. For scored pairs Binder's loss, with the pair threshold ``tau``, 0.5 by default.
    prob : float in (0, 1)
        Probability of the credible ball; not with scored pairs, which have no draws.
    group : str
        Group of an InferenceData, DataTree or file.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws; by default as in :func:`as_partition_draws`.
    item_dim : str, optional
        Dimension that runs over items; by default the remaining dimension. Not with `model`, which names the items.
    weights, log_weights : array_like, optional
        Weight of each draw, or its logarithm, as in :func:`as_partition_draws`.
    modes : bool
        Whether to search for further modes: groups of draws around another partition.
    seconds : float, optional
        Time limit. With one, the result depends on the machine. The search gets half of the time left after reading the
        draws, and each later step a part of the rest. Steps end early or are skipped, and :meth:`Summary.left_out`
        lists them. Reading, one short search, the credible ball and the items' uncertainty are never skipped; Ctrl-C in
        a search ends or skips all steps after it. Layers share the time equally.
    random_seed : int, Generator, SeedSequence or None
        The same seed gives the same result. With None, results of repeated calls may differ.
    progressbar : bool
        Whether to show progress if the work takes more than a second.
    **options
        Further arguments of :func:`consensus_partition`, such as ``method`` or ``n_clusters``.

    Returns
    -------
    Summary, LayersSummary or PairsSummary
        The partition, its optimality, credible ball and modes, the items' uncertainty and the convergence of chains.
        For layers, a mapping of their names to a summary each, with the differences between layers. For scored pairs,
        the partition with its expected precision and recall, the proof of its optimality by component,
        and the pairs to review.

    Raises
    ------
    ValueError
        If there are no labels or allocation probabilities, or several variables of them; the message names the argument
        to pass. Also for invalid arguments of the functions called, and for arguments on draws with scored pairs.
    TypeError
        If arguments for reading draws are given with layers.

    See Also
    --------
    consensus_partition : Search for the consensus partition only.
    diagnose : Check convergence only.
    attach : Store a summary with its posterior.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]] * 25
    >>> summary = pc.summarize(draws, loss="binder", random_seed=1)
    >>> summary.partition.labels.values
    array([0, 0, 1, 1], dtype=int32)
    >>> summary.certificate.status
    'optimal'

    Scored pairs:

    >>> import pandas as pd
    >>> table = {"unique_id_l": ["a", "b", "b"], "unique_id_r": ["b", "c", "d"], "match_probability": [0.9, 0.7, 0.4]}
    >>> linked = pc.summarize(pd.DataFrame(table), tau=0.5, random_seed=1)
    >>> linked.partition.clusters
    {0: ['a', 'b'], 1: ['c'], 2: ['d']}
    >>> linked.findings()[0]
    'The 4 records fall into 3 clusters: 2 of 1 record and 1 of 2 records.'
    """
    if "layer_dim" in options:
        raise TypeError("`layer_dim` is an argument of as_layers: summarize(as_layers(draws, layer_dim=...)).")
    if isinstance(var_name, Mapping):
        raise TypeError("`var_name` must be one name; several layers are read by as_layers: summarize(as_layers(...)).")
    check_options("summarize", options, inspect.signature(summarize).parameters)
    check_no_method(loss)
    as_loss_of_draws(loss)  # report an invalid loss before the model is read
    check_between("prob", prob, 1)
    clock = Clock(seconds)
    if isinstance(draws, Layers):
        named = {"var_name": var_name, "sample_dims": sample_dims, "item_dim": item_dim, "weights": weights}
        named |= {"model": model, "log_weights": log_weights, "group": None if group == "posterior" else group}
        for name, value in named.items():
            if value is not None:
                raise TypeError(f"`{name}` must be left out for layers, which as_layers reads; got {value!r}.")
        searched = {"random_seed": random_seed, "progressbar": progressbar}
        return summarize_layers(draws, clock, {"loss": loss, **options}, searched, prob=prob, modes=modes)
    where = Where(var_name, group, sample_dims, item_dim, weights, log_weights)
    posterior = clock("draws", _read, draws, where, model, progressbar=progressbar)
    searched = {"random_seed": random_seed, "progressbar": progressbar}
    if isinstance(posterior, ScoredPairs):
        if prob != _PROB:
            raise ValueError(f"`prob` must be left out for scored pairs, which have no credible ball; got {prob!r}.")
        return summarize_pairs(clock, posterior, {"loss": loss, **options}, searched)
    return summarize_posterior(clock, posterior, {"loss": loss, **options}, searched, prob=prob, modes=modes)


def _read(draws: Any, where: Where, model: Any, *, progressbar: bool) -> Posterior | ScoredPairs:
    with opened(draws, where, progressbar=progressbar) as (data, where):
        return read_posterior(data, where, model, progressbar=progressbar)


def summarize_posterior(
    clock: Clock,
    posterior: Posterior,
    options: dict[str, Any],
    searched: dict[str, Any],
    *,
    prob: float,
    modes: bool = True,
) -> Summary:
    """Summarize what was read; `options` are of the search, `searched` has seed and progress bar of all searches."""
    consensus = consensus_within(clock, posterior.draws, clock.part(SEARCH), searched | options)
    return summary_of(clock, posterior, consensus, searched, prob=prob, modes=modes)
