"""summarize(): one call and one object with all results to report."""

import inspect
from collections.abc import Sequence
from typing import Any, overload

from posterior_consensus.consensus.methods import check_no_method
from posterior_consensus.consensus.partition import check_options
from posterior_consensus.ensemble.draws import draws_of
from posterior_consensus.ensemble.layers import Layers
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.runtime.arguments import RandomSeed, check_between
from posterior_consensus.runtime.clock import Clock
from posterior_consensus.sources.containers import opened
from posterior_consensus.sources.door import find_source
from posterior_consensus.sources.labels import from_store
from posterior_consensus.sources.log_densities import log_of_draws
from posterior_consensus.sources.samples import one_of
from posterior_consensus.summary.layers import LayersSummary, summarize_layers
from posterior_consensus.summary.observed import observed_of
from posterior_consensus.summary.steps import SEARCH, search, summary_of
from posterior_consensus.summary.summary import Summary


@overload
def summarize(
    idata: Layers,
    *,
    loss: str | PartitionLoss | None = None,
    prob: float = 0.95,
    answers: bool = True,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> LayersSummary: ...


@overload
def summarize(
    idata: Any,
    var_name: str | None = None,
    *,
    model: Any = None,
    loss: str | PartitionLoss | None = None,
    prob: float = 0.95,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    answers: bool = True,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> Summary: ...


def summarize(
    idata: Any,
    var_name: str | None = None,
    *,
    model: Any = None,
    loss: str | PartitionLoss | None = None,
    prob: float = 0.95,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    answers: bool = True,
    seconds: float | None = None,
    random_seed: RandomSeed = None,
    progressbar: bool = True,
    **options: Any,
) -> Summary | LayersSummary:
    """Summarize a posterior of partitions: consensus, uncertainty, optimality and convergence.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset, path, or what as_partition_draws() or as_allocation_probabilities() takes
        What the sampler returned. Labels or allocation probabilities are found automatically; if both of one allocation
        are present, the probabilities are used, and `source` reports it. If each draw holds several partitions, what
        :func:`as_layers` returns.
    var_name : str, optional
        Name of the variable of labels or allocation probabilities; with `model`, of the mixture.
    model : pymc.Model, optional
        For a posterior with marginalized labels, see :func:`allocation_probabilities`.
    loss : str or PartitionLoss, optional
        Loss whose posterior expectation the consensus minimizes; by default "vi".
    prob : float in (0, 1)
        Probability of the credible ball.
    group : str
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws, by default as for :func:`as_partition_draws`.
    item_dim : str, optional
    weights, log_weights : array_like, optional
        As for :func:`as_partition_draws`; no `item_dim` with a model, which names the items.
    answers : bool
        Whether to search for further modes.
    seconds : float, optional
        Time limit of the whole call. The search has half of the time left after reading the draws, and each later step
        a part of the rest. Steps end early or are skipped, and :meth:`Summary.left_out` lists them. Reading, one short
        search, the credible ball and the items' uncertainty are never skipped: they need a few passes over the labels.
        With a limit, results depend on the machine. Layers share the time equally.
    random_seed : int, Generator, SeedSequence or None
    progressbar : bool
        Whether to show progress if a step takes more than a second.
    **options
        Further arguments of :func:`consensus_partition`, such as ``method`` or ``n_clusters``.

    Returns
    -------
    Summary or LayersSummary
        Of layers, a mapping of their names to a summary each, and what changes from one to the next.

    Raises
    ------
    ValueError
        If there are neither labels nor allocation probabilities, or several variables of them; the message names
        the argument to pass. Also for invalid arguments of the functions that are called.
    TypeError
        If arguments by which draws are read are given for layers.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]] * 25
    >>> summary = pc.summarize(draws, loss="binder", random_seed=1)
    >>> summary.consensus.labels.values
    array([0, 0, 1, 1], dtype=int32)
    >>> summary.certificate.status
    'optimal'
    """
    if "layer_dim" in options:
        raise TypeError("`layer_dim` is an argument of as_layers: summarize(as_layers(idata, layer_dim=...)).")
    check_options(options, inspect.signature(summarize).parameters)
    check_no_method(loss)
    as_loss(loss, kind=PartitionLoss)  # report a wrong name or number before the model is read
    check_between("prob", prob, 1)
    clock = Clock(seconds)
    if isinstance(idata, Layers):
        named = {"var_name": var_name, "sample_dims": sample_dims, "item_dim": item_dim, "weights": weights}
        named |= {"model": model, "log_weights": log_weights, "group": None if group == "posterior" else group}
        for name, value in named.items():
            if value is not None:
                raise TypeError(f"`{name}` must be left out for layers, which as_layers reads; got {value!r}.")
        searched = {"random_seed": random_seed, "progressbar": progressbar}
        return summarize_layers(idata, clock, {"loss": loss, **options}, searched, prob=prob, answers=answers)
    weights = one_of(weights, log_weights)
    where = {"group": group, "sample_dims": sample_dims, "item_dim": item_dim, "weights": weights}
    with opened(from_store(idata, progressbar=progressbar)) as data:
        source, description = clock("draws", find_source, data, var_name, model, **where, progressbar=progressbar)
        draws = draws_of(source)
        observed = observed_of(data, draws)
        logs = log_of_draws(data, draws) if group == "posterior" else None
    searched = {"random_seed": random_seed, "progressbar": progressbar}
    consensus = search(clock, draws, clock.part(SEARCH), {"loss": loss, **searched, **options})
    return summary_of(
        clock,
        draws,
        consensus,
        source=description,
        prob=prob,
        answers=answers,
        searched=searched,
        observed=observed,
        logs=logs,
    )
