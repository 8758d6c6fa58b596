"""Independent runs of clustering programs as draws that know they are runs."""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import Items, difference
from posterior_consensus.ensemble.labels import ArrayLabels
from posterior_consensus.ensemble.noisy_runs import NoisyRuns
from posterior_consensus.ensemble.partitions import HasDraws, as_codes, native, smallest_dtype
from posterior_consensus.ensemble.runs_with_missing import RunsWithMissing
from posterior_consensus.ensemble.samples import RunSamples, Samples
from posterior_consensus.kernels.tables import CLUSTERS_FROM
from posterior_consensus.runtime.aliases import Flags
from posterior_consensus.runtime.arguments import check_left_out, is_number, listing, warn
from posterior_consensus.sources.accumulate import PartitionAccumulator
from posterior_consensus.sources.conversion import opened
from posterior_consensus.sources.factors import are_factors, factors_of, settings_of, values_of_runs
from posterior_consensus.sources.formats import PLAIN, is_plain, names_of
from posterior_consensus.sources.forms_of_runs import Keys, Long, Runs, found_in_rows, found_runs, is_files
from posterior_consensus.sources.labels import weighted_samples

_FEW = 20  # items, which a run may well separate
_NAMED = 3  # items named in an error
_IN_NAME = "{}"  # what runs differ in, in a pattern of their names
# Runs "leiden_0.5_3" and "k4_3": their stem, value and number.
_NUMBERED = re.compile("(.+[_-]|[A-Za-z]+(?=[0-9]))([^_-]+)([_-])[A-Za-z]*[0-9]+")


@overload
def as_runs(
    data: Any,
    keys: Keys | None = None,
    *,
    axis: int | str | None = None,
    item: Hashable | None = None,
    run: Hashable | None = None,
    label: Hashable | None = None,
    groups: Any = None,
    weights: Any = None,
    noise: Any = None,
    missing: None = None,
) -> PartitionDraws: ...


@overload
def as_runs(
    data: Any,
    keys: Keys | None = None,
    *,
    axis: int | str | None = None,
    item: Hashable | None = None,
    run: Hashable | None = None,
    label: Hashable | None = None,
    groups: Any = None,
    weights: Any = None,
    noise: Any = None,
    missing: str | float,
) -> RunsWithMissing: ...


def as_runs(
    data: Any,
    keys: Keys | None = None,
    *,
    axis: int | str | None = None,
    item: Hashable | None = None,
    run: Hashable | None = None,
    label: Hashable | None = None,
    groups: Any = None,
    weights: Any = None,
    noise: Any = None,
    missing: Any = None,
) -> PartitionDraws:
    """Convert the labels of independent runs of clustering programs.

    Parameters
    ----------
    data : AnnData, DataFrame, list, dict, array_like, DataArray, path, list of paths, PartitionDraws or Summary
        Labels of each run: integers, text or categories. A label means something in its own run alone.

        - An object with `obs` and `obs_names`, such as an AnnData: columns of `obs`, chosen by `keys`.
        - A table of pandas, polars or pyarrow, or a file of one: a row for each item, a column for each run.
          Items are named by the index, or by a first column of text without repetition.
        - A list of label vectors, or a dict of these by the runs' names. Items are paired by name if the vectors are
          Series or DataArrays with names, else by place.
        - An array, runs x items, or an .npy file of one. Runs of a DataArray are along its dimension "run" or "draw",
          if it has one.
        - A list of files, one for each run: a column of the items' names, and one of labels. Runs are named by files.
        - Draws of labels, or a summary, whose draws are then taken as runs.
    keys : str or sequence of str, optional
        Columns of the runs, or patterns such as ``"leiden_*"``. By default all columns of a table.
    axis : {0, 1} or str, optional
        Dimension of an array or a table along which the runs are. By default 0 for arrays, and 1 for tables.
    item, run, label : str, optional
        Columns of a long table, or of a file of one, with a row for each item and run: names of items, names of runs,
        and labels. Items and runs stay in the order in which they are named first. All three are given, or none.
    groups : str, sequence, dict or Series, optional
        What the runs differ in, such as program, resolution or number of clusters: one value for each run, by the run's
        name in a dict or a Series with names. Or a pattern of the runs' names, with ``{}`` for this value and ``*`` for
        any other text, such as ``"leiden_{}_*"``; values become numbers if all are. By default all runs are alike.
        Several factors, as :func:`compare_factors` takes them, make a group of each setting.
    weights : array_like, dict or Series, optional
        Weight of each run, in their order or by its name, such as 12 for one Gaussian mixture beside twelve runs of
        Leiden. By default all runs count alike.
    noise : int or str, optional
        Label of items that a run puts into no cluster, such as -1 of HDBSCAN and BERTopic, also written ``"-1"``. Such
        an item is together with no other in this run.
    missing : int, str or NaN, optional
        Label of items that a run did not have, as in clustering by resampling; NaN and None are missing too. Losses are
        then of the items that a run had, and each pair of items is counted over the runs that had both.

    Returns
    -------
    PartitionDraws, NoisyRuns or RunsWithMissing
        Runs: `samples.draw` has their names, or their numbers, and `samples.chain` their groups. With `noise`,
        NoisyRuns, whose `noise` says which items each run calls so. With `missing`, RunsWithMissing, even if no label
        is missing, which :func:`consensus_partition`, :func:`summarize`, :func:`credible_ball`,
        :func:`item_uncertainty`, :func:`diagnose`, :func:`particles` and :func:`compare_layers` take, under VI,
        Binder's loss and others that are linear; functions that need complete runs say so.

    Raises
    ------
    ValueError
        If a column is not found, labels are neither integers, text nor categories, a label is negative, ``"-1"`` or
        missing and neither `noise` nor `missing` says what this means, both are one label, or all labels are noise or
        missing. If runs have different items, or the same name, or several items have one name. If a long table has an
        item of a run twice, or lacks names. If `groups` do not fit the runs. With `missing`, if an item is in no run.
    TypeError
        If `data` is of no kind listed above, or labels of a run are of several types.

    Warns
    -----
    UserWarning
        If no label is `noise`, or none is `missing`. If no `groups` are given, but names such as "leiden_0.5_3" have
        several values of several runs each, or a pattern makes a group of each run. If a column that `keys` do not
        name, or name by a pattern alone, has many numbers, all above 1, as counts have.

    See Also
    --------
    as_partition_draws : Convert draws of chains.
    as_pair_similarity : Convert a similarity matrix, or draws of chains with missing labels.
    as_layers : Convert runs by resolution to layers.

    Notes
    -----
    Runs are independent. Their order says nothing and decides nothing, their effective number is their number, and the
    standard error of a mean over R runs with standard deviation s is s / sqrt(R).

    With ``missing``, the expected loss of a partition c is the mean over runs r, of weight w_r, of the loss of c
    restricted to the items O_r of the run:

        E L(c) = sum_r w_r L(c on O_r, z_r).

    VI and Binder's loss need no similarities for this, so pairs that no run had cost nothing and say nothing. The
    distance of two runs is that on the items that both had; of two without any, the mean of the other distances. The
    mean similarity of an item to a cluster is the share of its meetings with the other members, over all runs, in which
    they are together.

    Let m_ri = 1 if run r had item i, else 0, z_ri its label, and n_ij = sum_r m_ri m_rj. Similarities are

        p_ij = sum_r m_ri m_rj 1{z_ri = z_rj} / n_ij,    error_ij^2 = p_ij (1 - p_ij) / (n_ij - 1),

    the consensus matrix of clustering by resampling [1]_; errors are corrected near 0 and 1 as in
    :func:`diagnostics.similarity_mcse`. A loss L of the similarities, as PEAR, has the error of the jackknife over
    runs: with L_r computed without run r, it is the standard deviation of R L - (R - 1) L_r divided by sqrt(R). It is
    unknown if a pair is in one run only. Similarities, and such losses, are refused if a pair is in none.

    References
    ----------
    .. [1] Monti, Tamayo, Mesirov and Golub (2003), Machine Learning 52, 91-118.
       https://doi.org/10.1023/A:1023949509487

    Examples
    --------
    >>> import pandas as pd
    >>> import posterior_consensus as pc
    >>> table = pd.DataFrame(
    ...     {"leiden_0.5_a": ["0", "0", "1"], "leiden_0.5_b": ["1", "1", "1"], "leiden_1.0_a": ["0", "1", "2"]},
    ...     index=["AAC", "ACC", "CAT"],
    ... )
    >>> runs = pc.as_runs(table, "leiden_*", groups="leiden_{}_*")
    >>> runs.labels
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 1, 2]], dtype=uint8)
    >>> runs.samples.draw
    array(['leiden_0.5_a', 'leiden_0.5_b', 'leiden_1.0_a'], dtype=object)
    >>> runs.samples.chain
    array([0.5, 0.5, 1. ])

    Items in no cluster, and an array with a column for each run:

    >>> runs = pc.as_runs([[0, 0], [0, -1], [-1, -1]], axis=1, noise=-1)
    >>> runs.noise
    array([[False, False,  True],
           [False,  True,  True]])

    A long table, such as the cards that each person sorts into piles:

    >>> sorts = pd.DataFrame(
    ...     {"user": [7, 7, 7, 9, 9, 9], "card": ["a", "b", "c", "c", "a", "b"], "pile": ["x", "x", "y", "k", "k", "l"]}
    ... )
    >>> runs = pc.as_runs(sorts, item="card", run="user", label="pile")
    >>> runs.labels
    array([[0, 0, 1],
           [0, 1, 0]], dtype=uint8)

    Runs of some of the items:

    >>> first, second = pd.Series([0, 0, 1], ["AAC", "ACC", "CAT"]), pd.Series([5, 7], ["ACC", "AAC"])
    >>> pc.as_runs({"first": first, "second": second}, missing=float("nan")).labels
    array([[ 0,  0,  1],
           [ 0,  1, -1]], dtype=int32)
    """
    for argument, given in (("noise", noise), ("missing", missing)):
        if not (given is None or is_number(given) or isinstance(given, str)):
            raise TypeError(f"`{argument}` must be one label, an integer, text or NaN; got {given!r}.")
    if noise is not None and missing is not None and (_is_nan(noise) or _equal_to(np.array([noise]), missing)[0]):
        raise ValueError(
            f"`noise` and `missing` must be different labels, and NaN is missing; got {_in_code(noise)} and "
            f"{_in_code(missing)}."
        )
    columns = Long(item, run, label)
    if is_made(data):
        made = {"keys": keys, "axis": axis, **columns._asdict(), "noise": noise, "missing": missing}
        return _of_draws(data, groups, weights, made)
    if any(name is not None for name in columns):
        check_left_out("a long table, whose columns are `item`, `run` and `label`", keys=keys, axis=axis)
        runs = found_in_rows(data, columns)
    else:
        runs = found_runs(data, keys, axis, is_partial=missing is not None)
    samples = _samples(runs, groups, weights)
    if groups is None and missing is None and runs.names is not None:
        _warn_if_pooled(runs.names.to_numpy())
    if not runs.n_runs or not runs.items.n_items:
        raise ValueError(
            f"`data` must hold at least one run of one item; got {runs.n_runs} runs of {runs.items.n_items} items."
        )
    return _converted(runs, samples, noise, missing)


def is_made(data: Any) -> bool:
    """Whether data are draws, or what is opened as such: a summary, an accumulator, a store."""
    if isinstance(data, (str, Path)):
        return not is_files(data) or bool(_files_of(Path(data)))
    return isinstance(data, (PairSource, HasDraws, PartitionAccumulator))


def _files_of(path: Path) -> str:
    """What to give instead of a folder of tables, or of a pattern of names; empty for any other path."""
    if path.is_dir() and any(is_plain(one) for one in path.iterdir()):
        return f"Give the folder's files: sorted(pathlib.Path({str(path)!r}).glob('*.csv'))."
    if any(character in path.name for character in "*?[") and not path.exists():
        return f"Give what matches: sorted(glob.glob({str(path)!r}))."
    return ""


def _of_draws(data: Any, groups: Any, weights: Any, made: Mapping[str, Any]) -> PartitionDraws:
    """Draws that are runs, whose names and groups stay if they are runs already."""
    if isinstance(data, (str, Path)) and (hint := _files_of(Path(data))):
        raise ValueError(f"`data` must be a file, or a list of files, one a run; got {str(data)!r}. {hint}")
    with opened(data) as (found, _):
        if not isinstance(found, PairSource):
            raise TypeError(
                f"`data` must be a path to a {names_of(PLAIN)} file, or to a store; got {str(data)!r}. Open it, and "
                " take the variable of the labels."
            )
        draws = found.as_draws("as_runs", lacking=True)
    if draws.counted_draws is None:
        raise ValueError(
            "`data` must be draws of labels, as runs have no allocation probabilities; got draws with some. Leave the "
            "probabilities out by draws.labels_only()."
        )
    check_left_out("draws, which are made already", **made)
    own = draws.samples
    is_run = not own.series or (own.named and len(own.chains) == 1)
    names = own.draw if is_run else np.arange(own.n_draws)
    chain = own.chain if groups is None and not own.series else _groups_of_runs(groups, names)
    named = own.named and is_run
    return replace(draws, samples=_with_weights(RunSamples(chain, names, own.weights, named), weights))


def _samples(runs: Runs, groups: Any, weights: Any) -> Samples:
    n, names = runs.n_runs, np.arange(runs.n_runs) if runs.names is None else runs.names.to_numpy()
    if runs.names is not None and not runs.names.is_unique:
        raise ValueError(f"`data` must name each run once; {difference(runs.names, runs.names, 'runs')}.")
    equal = np.full(n, 1.0 / max(n, 1))
    return _with_weights(
        RunSamples(_groups_of_runs(groups, names), names, equal, named=runs.names is not None), weights
    )


def _with_weights(samples: Samples, weights: Any) -> Samples:
    return samples if weights is None else weighted_samples(samples, values_of_runs(weights, samples.draw, "weights"))


def _groups_of_runs(groups: Any, names: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Group of each run; with several factors, its setting."""
    if groups is None:
        return np.zeros(len(names), np.int64)
    if are_factors(groups, names):
        return settings_of(factors_of(groups, names, "groups"))
    found = values_of_runs(groups, names, "groups")
    if isinstance(groups, str) and 1 < names.size == len(set(found.tolist())):
        other = _pattern_of(names)
        warn(
            f"`groups` must be what several runs have in common; {groups!r} makes {names.size} groups of one run. "
            + ("Leave it out if the runs are alike." if other is None else f"Give groups={other!r}.")
        )
    return found


def _warn_if_pooled(names: npt.NDArray[Any]) -> None:
    """Warn if runs without groups have names such as "leiden_0.5_3", with several values of several runs each."""
    pattern = _pattern_of(names)
    if pattern is not None:
        warn(
            f"`groups` should say what runs differ in: {str(names[0])!r} to {str(names[-1])!r} are taken as one kind. "
            f"If the last number is a seed, give groups={pattern!r}, and see compare_layers. If it is a setting, too, "
            f"see compare_factors. If all are of one kind, give groups=[0] * {names.size}."
        )


def _pattern_of(names: npt.NDArray[Any]) -> str | None:
    """Pattern of the groups in names of a stem, a value and a number, if several values have several runs each."""
    found = [_NUMBERED.fullmatch(str(name)) for name in names]
    parts = {one.group(1, 3) for one in found if one}
    values = pd.Series([one[2] for one in found if one], dtype=object).value_counts()
    if None in found or len(parts) != 1 or len(values) < 2 or values.min() < 2:
        return None
    ((stem, after),) = parts
    return f"{stem}{_IN_NAME}{after}*"


Marks = Callable[[tuple[int, ...]], Flags]  # items of a label, by its position in an array


def _converted(runs: Runs, samples: Samples, noise: Any, missing: Any) -> PartitionDraws:
    """Number the labels of each run; noise and missing items get 0."""
    each = (_coded(vector, runs, k, noise, missing) for k, vector in enumerate(runs.vectors))
    coded = ArrayLabels.of_each(each, (runs.n_runs, runs.items.n_items))
    if noise is None and missing is None:
        return PartitionDraws(runs.items, samples, coded)
    outside, (name, label) = coded.array == 0, ("noise", noise) if missing is None else ("missing", missing)
    if outside.all():
        raise ValueError(f"`data` must not be all {name}; got {outside.size} labels equal to {label!r}.")
    if not outside.any():
        warn(f"`{name}` must be a label of the runs; no label is {label!r}, so no item is {name} in any run.")
    if missing is None and outside.any():
        return NoisyRuns.of_codes(coded, samples, runs.items)
    if missing is None:
        return PartitionDraws(runs.items, samples, NoisyRuns.of_codes(coded, samples, runs.items).backend)
    return _with_missing(runs.items, coded, samples, noise)


def _with_missing(items: Items, coded: ArrayLabels, samples: Samples, noise: Any) -> RunsWithMissing:
    """Runs of some items each, of which 0 stands for missing, and 1 for noise if that is given."""
    lost = np.flatnonzero((coded.array == 0).all(axis=0))
    if lost.size:
        raise ValueError(
            f"`data` must have each item in one run at least; {lost.size} are in none, such as "
            f"{listing(items.named(lost[:_NAMED]))}. Leave them out."
        )
    found = RunsWithMissing(items, samples, coded)
    if noise is not None and not found.noise.any():
        warn(f"`noise` must be a label of the runs; no label is {noise!r}, so no item is noise in any run.")
    return found


def _coded(
    labels: Any, runs: Runs, run: int, noise: Any, missing: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Labels (1, n_items) of a run by first appearance, and their number (1,).

    0 is a given `noise`; or, if `missing` is given, an item that is missing, and 1 is noise.
    """
    codes, distinct = pd.factorize(native(labels))
    found = pd.Series(np.asarray(distinct)).infer_objects().to_numpy()
    absent = codes < 0
    of_noise, of_missing = (_equal_to(found, label) for label in (noise, missing))
    if absent.any() and missing is None and not _is_nan(noise):
        marks = found[_negative(found) & ~of_noise].tolist()
        raise _no_cluster(runs, run, absent, "NaN", _remedy(np.nan, noise, missing, *marks[:1]))
    if run in runs.unnamed and found.size == codes.size > _FEW:
        raise ValueError(
            f"{_name(runs, run)} must have clusters of several items; got {found.size} labels that all differ. If it "
            "names or counts the items, make it the index or leave it out by `keys`; if it is a run, name it in `keys`."
        )
    rest = np.flatnonzero(~(of_noise | of_missing))
    _check_run(found[rest], lambda index: codes == rest[index[0]], runs, run, (noise, missing))
    if run in runs.unnamed and rest.size > _FEW and found.dtype.kind in "iuf" and found[rest].min() > 1:
        warn(
            f"{_name(runs, run)} must be labels of clusters; got {rest.size} numbers from {found[rest].min():g} to "
            f"{found[rest].max():g}, which may count something. If so, leave it out by `keys`; if it is a run, name it "
            "in `keys`."
        )
    if noise is None and missing is None:
        return codes[np.newaxis].astype(smallest_dtype(found.size)), np.array([found.size])
    in_cluster = ~(of_noise | of_missing)
    reserved = CLUSTERS_FROM - 1 if missing is not None else 0
    numbers = np.where(in_cluster, np.cumsum(in_cluster) + reserved, reserved * of_noise)
    numbers = np.append(numbers, 0)  # the last is that of code -1, NaN
    n_clusters = max(int(numbers.max()), reserved) + 1
    return numbers.astype(smallest_dtype(n_clusters))[codes][np.newaxis], np.array([n_clusters])


def _check_run(found: npt.NDArray[Any], where: Marks, runs: Runs, run: int, given: tuple[Any, Any]) -> None:
    """Raise an error for labels that are none, or may be of no cluster; `where` says which items have a label.

    `given` are the labels of noise and of missing items.
    """
    negative = _negative(found)
    if negative.any():
        at = int(negative.argmax())
        raise _no_cluster(runs, run, where((at,)), str(found[at]), _remedy(found.tolist()[at], *given))
    try:
        as_codes(found, _name(runs, run), lambda index: _first(where(index), runs.items))
    except (TypeError, ValueError) as error:
        hint = "" if runs.names is None else " Columns that are no runs are left out by `keys`."
        raise type(error)(f"{error}{hint}") from None


def _name(runs: Runs, run: int) -> str:
    return f"run {run if runs.names is None else repr(str(runs.names[run]))} of `data`"


def _negative(found: npt.NDArray[Any]) -> Flags:
    """Which labels are negative, or the text of -1."""
    return found < 0 if found.dtype.kind in "if" else _equal_to(found, -1)


def _no_cluster(runs: Runs, run: int, where: Flags, got: str, remedy: str) -> ValueError:
    return ValueError(
        f"{_name(runs, run)} must have a cluster for every item; got {got} for {where.sum()} of {where.size} items, "
        f"the first at {_first(where, runs.items)}. {remedy}"
    )


def _remedy(label: Any, noise: Any, missing: Any, mark: Any = None) -> str:
    """What to give for items of this label, next to what is given; `mark` is a negative label of other items."""
    if noise is None and missing is None:
        if mark is not None:  # both negative labels and NaN
            return f"If the run puts items of label {_in_code(mark)} into no cluster, {_one_of(mark)}"
        label = _in_code(label)
        return f"If the run puts them into no cluster, give noise={label}; if it did not have them, missing={label}."
    if _is_nan(label):
        return f"If the run did not have them, {_one_of(noise)}"
    if noise is None and _is_nan(missing):
        return f"If the run puts them into no cluster, {_one_of(label)}"
    label = _in_code(label)
    other = {"noise": "If the run puts them into no cluster", "missing": "If the run did not have them"}
    given = {"noise": noise, "missing": missing}
    meant = [name for name, value in given.items() if value is not None and not _is_mark(value)]
    said = [f"Did you mean {name}={label}?" for name in meant[:1]]
    said += [f"{when}, give {name}={label}." for name, when in other.items() if given[name] is None]
    return " ".join(said) or "Number the clusters from 0."


def _is_mark(label: Any) -> bool:
    """Whether a label looks like one of no cluster."""
    return _is_nan(label) or str(label).startswith("-")


def _one_of(noise: Any) -> str:
    """What to give of runs that have noise and did not have all items."""
    label = _in_code(noise)
    return f"give noise={label}, and missing=numpy.nan for items of NaN, which a run did not have."


def _in_code(label: Any) -> str:
    """How a label is given as an argument; whole numbers are floats next to NaN only."""
    if _is_nan(label):
        return "numpy.nan"
    return repr(int(label) if isinstance(label, float) and label.is_integer() else label)


def _first(where: Flags, items: Items) -> str:
    """Describe the first of these items."""
    at = np.flatnonzero(where)[:1]
    return f"{items.dim} {str(items.named(at)[0])!r}"


def _is_nan(label: Any) -> bool:
    return is_number(label) and bool(np.isnan(label))


def _equal_to(found: npt.NDArray[Any], label: Any) -> Flags:
    """Which labels are this one, also if one is a number and the other its text."""
    if label is None or _is_nan(label):
        return np.zeros(found.size, np.bool_)
    number = pd.to_numeric(pd.Series([label]), errors="coerce")[0]
    if found.dtype.kind in "iuf":
        return found == number
    text = str(int(number)) if number == np.floor(number) else str(label)
    return found.astype(str) == text
