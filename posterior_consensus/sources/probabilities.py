"""Stored allocation probabilities, or their logarithms."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.ensemble.allocations import AllocationProbabilities, sampled_components
from posterior_consensus.ensemble.draws import PartitionDraws, draws_of
from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.labels import LabelsInMemory
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Place, canonical_rows, first_of
from posterior_consensus.runtime.arguments import RandomSeed, check_flag
from posterior_consensus.sources.labels import from_store
from posterior_consensus.sources.locations import place_in
from posterior_consensus.sources.rounding import SLIGHT, tolerance
from posterior_consensus.sources.samples import made_already, one_of, samples_of
from posterior_consensus.sources.variables import probability_array

_LOGARITHM = re.compile(r"'(lp_|lps'|log_)", re.IGNORECASE)  # names of variables, quoted


def as_allocation_probabilities(
    data: Any,
    var_name: str | None = None,
    *,
    log: bool | None = None,
    group: str = "posterior",
    sample_dims: str | Sequence[str] | None = None,
    item_dim: str | None = None,
    component_dim: str | None = None,
    weights: Any = None,
    log_weights: Any = None,
    random_seed: RandomSeed = None,
) -> PartitionDraws:
    """Convert stored allocation probabilities P(z_i = k | theta_t, y_i), or their logarithms, to draws.

    Parameters
    ----------
    data : InferenceData, DataTree, Dataset, DataArray, ndarray, list, DataFrame, dict, path or PartitionDraws
        Arrays are draws x items x components or chains x draws x items x components. A DataFrame has a column for each
        item and component, ``p[1,2]`` or Stan's ``p.1.2``. A path is a NetCDF or Zarr file, a NumPy file or a table of
        text with such columns. A list of tables or arrays has one per chain.
    var_name : str, optional
        Name of the variable, such as ``log_prob_z``, ``lp_z``, ``log_theta`` or ``responsibilities``. By default the
        only candidate: it has the sample dimensions and two more. It has a usual name, or its values or their
        exponentials sum to one over one of the two dimensions.
    log : bool, optional
        Whether the values are logarithms. By default, values that sum to one are probabilities. Other values are
        logarithms if none is above 0, or the name is ``lps`` or starts with ``log_`` or ``lp_``. If `log` is given,
        values need not be normalized.
    group : str
        Group of an InferenceData, DataTree or file.
    sample_dims : str or sequence of str, optional
        Dimensions that run over draws; by default as in :func:`as_partition_draws`.
    item_dim, component_dim : str, optional
        Dimensions that run over items and components. By default components run along the dimension over which the
        values are normalized, or the last dimension.
    weights, log_weights : array_like, optional
        Weight of each draw, or its logarithm, as in :func:`as_partition_draws`.
    random_seed : int, Generator, SeedSequence or None
        Seed for sampling `labels` from the probabilities; None samples the same labels each time.

    Returns
    -------
    PartitionDraws
        Draws with probabilities of shape (n_draws, n_items, n_components) in ``soft.probabilities``, and one partition
        per draw sampled from them in `labels`.

    Raises
    ------
    ValueError
        If there is no such variable, or several, a value is NaN, an item has probability 0 for all components, or it
        is unclear whether the values are logarithms.
    TypeError
        If the values are not floats.

    See Also
    --------
    as_partition_draws : Convert labels.
    allocation_probabilities : Compute the probabilities from a PyMC model.

    Notes
    -----
    If `log` is not given, sums of K probabilities may differ from one by rounding: K / 2 units of the last decimal, at
    most 0.05. Unrounded sums may differ by 1e-5, in single precision by 1e-3. They are then normalized, and values from
    -1e-5 to 0 are set to 0.

    Items must be independent given the parameters of a draw, as in mixtures. The states of a hidden Markov model are
    not: probabilities of single items do not determine probabilities of pairs. Pass sampled states to
    :func:`as_partition_draws` instead.

    Examples
    --------
    >>> import numpy as np
    >>> import posterior_consensus as pc
    >>> log_prob_z = np.log([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> draws = pc.as_allocation_probabilities(log_prob_z)
    >>> draws.soft.probabilities[0]
    array([[0.9, 0.1],
           [0.5, 0.5]])
    >>> pc.expected_loss(draws, [0, 1], loss="binder")["expected_loss"].item()
    0.25
    """
    if log is not None:
        check_flag("log", log)
    weights = one_of(weights, log_weights)
    data = from_store(data)
    if isinstance(data, PairSource):
        named = {"var_name": var_name, "group": group, "item_dim": item_dim, "component_dim": component_dim}
        draws = draws_of(made_already(data, weights, **named, sample_dims=sample_dims))
        draws.as_soft("`data`")
        return draws
    values, dims, (item_dim, component_dim) = probability_array(
        data, var_name, group, sample_dims, item_dim, component_dim
    )
    name = repr(values.name) if values.name is not None else "`data`"
    samples = samples_of(values, dims, weights, name)
    probabilities = _normalised(values.values, log, name, place_in(values))
    probabilities = probabilities.reshape(samples.n_draws, *values.shape[-2:])
    components = sampled_components(probabilities, random_seed)
    return PartitionDraws(
        Items.along(values, item_dim),
        samples,
        LabelsInMemory(*canonical_rows(components, probabilities.shape[2])),
        AllocationProbabilities(probabilities, components, component_dim),
    )


def _normalised(values: npt.NDArray[Any], log: bool | None, name: str, place: Place) -> npt.NDArray[np.floating]:
    """Probabilities (..., K) from values of any kind; float32 stays float32."""
    values = values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64)
    wrong = ~(values < np.inf)
    if wrong.any():
        value = "NaN" if np.isnan(values[wrong][0]) else "infinity"
        raise ValueError(
            f"{name} must hold probabilities or their logarithms; got {value} at {first_of(wrong, place)}."
        )
    if log is None:
        log = _are_logarithms(values, name, place)
    if log:
        largest = values.max(axis=-1, keepdims=True)
        _check_possible(~np.isneginf(largest), "-inf", name, place)
        values -= largest
        np.exp(values, out=values)
    elif (negative := values < -SLIGHT).any():
        raise ValueError(
            f"{name} must not be negative if `log` is False; got {values[negative][0]} at {first_of(negative, place)}."
        )
    np.maximum(values, 0, out=values)
    total = values.sum(axis=-1, keepdims=True, dtype=np.float64)
    _check_possible(total > 0, "0", name, place)
    values /= total
    return values


def _check_possible(possible: npt.NDArray[np.bool_], value: str, name: str, place: Place) -> None:
    if not possible.all():
        raise ValueError(
            f"{name} must give each item a component; got {value} for all components from {first_of(~possible, place)}."
        )


def _are_logarithms(values: npt.NDArray[np.floating], name: str, place: Place) -> bool:
    sums = values.sum(axis=-1, dtype=np.float64)
    differences = np.abs(sums - 1)
    largest, allowed = differences.max(), tolerance(values, values)
    if largest <= allowed and values.min() >= -SLIGHT:
        return False
    if _LOGARITHM.match(name):
        return True
    if values.shape[-1] > 1:  # with one component, the logarithm is 0
        _check_possible((values != 0).any(axis=-1, keepdims=True), "0", name, place)
    above, below = values > 0, values < -SLIGHT
    if not above.any() or (below.any() and _exponentials_sum_to_one(values)):
        return True
    question = f"`log` must be given, as it is unclear whether {name} has logarithms"
    if below.any():
        fewer = min(above, below, key=np.count_nonzero)
        raise ValueError(
            f"{question}: probabilities are not below 0, and logarithms of probabilities not above 0; got "
            f"{values[fewer][0]:.7g} at {first_of(fewer, place)}, and values on the other side of 0. Correct this "
            "value; if all are logarithms that are not normalized, subtract the largest of each item, or give log=True."
        )
    worst = np.unravel_index(differences.argmax(), differences.shape)
    raise ValueError(
        f"{question}: none is below 0, and the values are not normalized, their sum over all components is "
        f"{sums[worst]:.7g} from {place((*map(int, worst), 0))}; rounding explains {allowed:.2g}."
    )


def _exponentials_sum_to_one(values: npt.NDArray[np.floating]) -> bool:
    with np.errstate(over="ignore"):
        probabilities = np.exp(values)
        differences = np.abs(probabilities.sum(axis=-1, dtype=np.float64) - 1)
    return bool(differences.max() <= tolerance(values, probabilities))
