"""Data of the interactive figures, as one block of text for the page's script."""

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.alignment import AlignedPartitions
from posterior_consensus.answers.encodings import item_embedding
from posterior_consensus.answers.membership import ItemUncertainty
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.ensemble.items import Items, numbers_for_colours
from posterior_consensus.ensemble.links import own_and_nearest_by_counts
from posterior_consensus.ensemble.pairs import PairSimilarity
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.plots.colours import NEUTRAL, colours_of, patterns_of
from posterior_consensus.plots.data import observed_table
from posterior_consensus.plots.frame import SOME_OF_PAIRS, some_of
from posterior_consensus.plots.psm import item_order
from posterior_consensus.results import display
from posterior_consensus.results.stored_as import own_in
from posterior_consensus.runtime.aliases import Floats
from posterior_consensus.runtime.progress import track
from posterior_consensus.summary.about_draws import expectation
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.choices import Choice, choices_of

_MOST_CHAINS = 8  # chains with a matrix each; more are pooled
_MOST_BYTES = 4_000_000  # of similarities before packing
_MOST_FEATURES = 30
_STEPS = 255  # levels of a similarity
_TEN_THOUSANDTHS, _MISSING = 10_000, 65_535  # unit and missing value of numbers in the table
_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus")

_ABOUT = "The pictures show {:,} of {:,} items, chosen at random; the search and the table include every item."

_ALL = "all"  # name of pooled chains
_ABSENT = "not there"  # cluster name of items that a layer lacks
_AS_ONE = f"The {{}} are shown together, because there are more than {_MOST_CHAINS}."

Arrays = dict[str, npt.NDArray[Any]]


def payload_of(summary: SummaryRecord, *, progressbar: bool) -> str:
    """Return names, partitions, similarities and data, packed in base 64."""
    choices, notes = choices_of(summary, progressbar=progressbar)
    draws, items = summary.draws, summary.draws.items
    chains = _chains(draws)
    shown = _shown(draws.n_items, len(chains))
    if shown.size < draws.n_items:
        notes.insert(0, _ABOUT.format(shown.size, draws.n_items))
    if list(chains) == [_ALL]:
        notes.insert(0, _AS_ONE.format(draws.samples.words.chains))
    data, pictured = _data(summary, shown), draws.of_items(shown)
    counted = None if draws.denominator() is None or draws.has_noise else PairSimilarity.of(pictured)
    matrix = counted if shown.size == draws.n_items else None
    listed, of_items = _packed_partitions(draws, matrix, choices, summary.items)
    meta = {
        **_looks_of_clusters(summary.items, choices),
        "chains": [{"name": str(name), "share": share} for name, share in chains.items()],
        "partitions": listed,
        "n_data": len(data),
        "n_clusters": summary.partition.n_clusters,
        "notes": notes,
        "words": summary.words._asdict(),
    }
    arrays = _packed_similarities(pictured, len(chains), choices[0].labels[shown]) | of_items
    return _packed(items, shown, data | _map(pictured if counted is None else counted), meta, arrays)


def payload_of_layers(
    summaries: Mapping[Any, SummaryRecord], partitions: AlignedPartitions, dim: str, *, progressbar: bool
) -> str:
    """Return the payload of layers along `dim`, each with one partition and one matrix.

    Items that a layer lacks form a last cluster, with similarity 0 to all others.
    """
    labels, items = partitions.labels.values, Items.along(partitions.labels, str(partitions.labels.dims[1]))
    shown = _shown(items.n_items, len(summaries))
    upper = np.triu_indices(shown.size, 1)
    total, number = np.zeros((2, shown.size, shown.size))
    columns, steps = list[Arrays](), list[npt.NDArray[np.uint8]]()
    for given, summary in zip(labels, track(summaries.values(), "Layers", progressbar=progressbar), strict=True):
        here = np.flatnonzero(given >= 0)
        at = here[items.take(here).order_of(summary.draws.items, "layer")]
        columns.append(_expanded(_of_reported(given[at], summary.items), at, items.n_items, len(partitions.names)))
        own = np.full(items.n_items, -1)
        own[at] = np.arange(at.size)
        inside, matrix = np.flatnonzero(own[shown] >= 0), np.zeros_like(total)
        if inside.size:
            matrix[np.ix_(inside, inside)] = summary.draws.of_items(own[shown[inside]]).shared_similarity
            number[np.ix_(inside, inside)] += 1
        total += matrix
        steps.append(np.rint(_STEPS * matrix[upper]).astype(np.uint8))
    mean = total / np.maximum(number, 1)
    np.fill_diagonal(mean, 1.0)
    of_items = _stacked(columns)
    numbers = numbers_for_colours(partitions.names)
    meta = {
        "clusters": [*map(str, partitions.names), _ABSENT],
        "colours": [*colours_of(numbers), NEUTRAL],
        "markers": [*(_MARKERS[k] for k in patterns_of(numbers)), _MARKERS[0]],
        "chains": [{"name": str(name), "share": 1.0} for name in summaries],
        "partitions": [
            {"kind": "layer", "value": str(name), "row": row, "words": f"{dim} {name}, {_in_short(summary)}"}
            for row, (name, summary) in enumerate(summaries.items())
        ],
        "n_data": 0,
        "n_clusters": 0,
        "notes": [_ABOUT.format(shown.size, items.n_items)] * (shown.size < items.n_items),
        "layers": dim,
        "words": next(iter(summaries.values())).words._asdict(),
    }
    order = item_order(mean, of_items["labels"][0, shown])
    arrays: Arrays = {"similarities": np.stack(steps), "order": order.astype(np.int32), **of_items}
    return _packed(items, shown, _map(PairSimilarity(items.take(shown), mean)), meta, arrays)


def _in_short(summary: SummaryRecord) -> str:
    best = summary.partition
    expected = expectation(best.loss, best.expected_loss, summary.words)
    return f"{display.counted(best.n_clusters, 'cluster')}, {expected}"


def _expanded(column: Arrays, at: npt.NDArray[np.intp], n_items: int, absent: int) -> Arrays:
    """Columns of the table for a partition of some items, expanded to all items."""
    fill = dict.fromkeys(column, _MISSING) | {"labels": absent, "nearest": -1}
    columns = {name: np.full(n_items, fill[name], values.dtype) for name, values in column.items()}
    for name, values in column.items():
        columns[name][at] = values
    return columns


def _chains(draws: PartitionDraws) -> dict[Any, float]:
    """Weight of each chain with its own matrix; a single entry if there are too many chains."""
    weights = {draws.samples.chain[rows[0]]: float(draws.weights[rows].sum()) for rows in draws.samples.chains}
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    return weights if len(weights) <= _MOST_CHAINS else {_ALL: 1.0}


def _shown(n_items: int, n_matrices: int) -> npt.NDArray[np.intp]:
    most = min(SOME_OF_PAIRS, int(np.sqrt(2 * _MOST_BYTES / n_matrices)))
    return some_of(n_items, most, most)


def _packed_similarities(draws: PartitionDraws, n_matrices: int, labels: Labels) -> Arrays:
    """Similarities (n_matrices, n_pairs) of the pairs above the diagonal, row by row, and an order of the items."""
    upper = np.triu_indices(draws.n_items, 1)
    matrices = [draws] if n_matrices == 1 else [chain for _, chain in draws.by_chain()]
    steps = [np.rint(_STEPS * chain.shared_similarity[upper]).astype(np.uint8) for chain in matrices]
    order = item_order(draws.shared_similarity, canonical_labels(labels))
    return {"similarities": np.stack(steps), "order": order.astype(np.int32)}


def _looks_of_clusters(items: ItemUncertainty, choices: list[Choice]) -> dict[str, list[str]]:
    """Name, colour and marker of each cluster, beginning with the reported partition."""
    n_named, n_clusters = len(items.names), max(int(choice.labels.max()) for choice in choices) + 1
    numbers = np.append(numbers_for_colours(items.names), np.arange(n_named, n_clusters))
    return {
        "clusters": [*map(str, items.names), *(f"further {k + 1}" for k in range(n_clusters - n_named))],
        "colours": colours_of(numbers),
        "markers": [_MARKERS[k] for k in patterns_of(numbers)],
    }


def _data(summary: SummaryRecord, shown: npt.NDArray[np.intp]) -> dict[str, Floats]:
    """Observed values of the items shown, by feature."""
    if summary.observed is None:
        return {}
    table = observed_table(summary.observed, summary.partition)
    return dict(list(zip(table.titles, table.values[shown].T, strict=True))[:_MOST_FEATURES])


def _map(draws: PairSource) -> dict[str, Floats]:
    """Positions of the items on a map by similarity; a single item is at the origin."""
    places = item_embedding(draws, n_axes=min(2, draws.n_items))
    shares = np.append(own_in(places, "share").values, 0.0)[:2]
    columns = np.column_stack([places.values, np.zeros(draws.n_items)])[:, :2].T
    names = [f"map by similarity, axis {k + 1} ({share:.0%} of the variation)" for k, share in enumerate(shares)]
    return dict(zip(names, columns, strict=True))


def _along(items: Items) -> Floats | None:
    """Numbers or times that name the items, if these are in another order than the data."""
    index = items.coords[items.dim].to_index() if items.dim in items.coords else None
    if index is None or index.dtype.kind not in "iufMm" or index.hasnans or index.is_monotonic_increasing:
        return None
    return index.to_numpy().astype(np.float64)


def _packed_partitions(
    draws: PartitionDraws, matrix: PairSimilarity | None, choices: list[Choice], items: ItemUncertainty
) -> tuple[list[dict[str, Any]], Arrays]:
    """The choices with their rows in the arrays, from the matrix of the draws if given; equal ones share a row."""
    rows: dict[bytes, int] = {}
    columns: list[Arrays] = []
    listed = list[dict[str, Any]]()
    for choice in choices:
        labels = choice.labels.astype(np.int32)
        row = rows.setdefault(labels.tobytes(), len(rows))
        if row == len(columns):
            columns.append(_of_reported(labels, items) if row == 0 else _of_other(labels, draws, matrix))
        listed.append({"kind": choice.kind, "value": choice.value, "row": row, "words": choice.words})
    return listed, _stacked(columns)


def _stacked(columns: list[Arrays]) -> Arrays:
    return {name: np.stack([column[name] for column in columns]) for name in columns[0]}


def _of_reported(labels: Labels, items: ItemUncertainty) -> Arrays:
    membership = np.full(labels.size, np.nan) if items.membership is None else items.membership.values
    columns = items.similarity.values, items.nearest.values, items.nearest_similarity.values
    return _row(labels, items.cluster.values, *columns, membership)


def _of_other(labels: Labels, draws: PartitionDraws, matrix: PairSimilarity | None) -> Arrays:
    """Columns without the probability of an item's own cluster, which is slow for many partitions."""
    clusters = canonical_labels(labels)
    if matrix is None:
        found = draws.own_and_nearest(clusters)
    else:
        found = own_and_nearest_by_counts(matrix.values, draws.n_draws, clusters)
    return _row(labels, clusters, *found, np.full(labels.size, np.nan))


def _row(labels: Labels, clusters: Labels, own: Floats, nearest: Labels, other: Floats, membership: Floats) -> Arrays:
    """Columns of the table for one partition; `nearest` numbers its `clusters`, the page its `labels`."""
    number = np.zeros(int(clusters.max()) + 1, np.int32)
    number[clusters] = labels
    return {
        "labels": labels,
        "nearest": np.where(nearest < 0, -1, number[nearest]).astype(np.int32),
        "own": _fixed(own),
        "other": _fixed(other),
        "membership": _fixed(membership),
    }


def _fixed(values: Floats) -> npt.NDArray[np.uint16]:
    return np.where(np.isnan(values), _MISSING, np.rint(_TEN_THOUSANDTHS * np.nan_to_num(values))).astype(np.uint16)


def _packed(
    items: Items, shown: npt.NDArray[np.intp], placed: dict[str, Floats], meta: dict[str, Any], arrays: Arrays
) -> str:
    """Pack length and text of a JSON header, then the arrays' bytes, each at a multiple of eight."""
    along = _along(items)
    meta |= {
        "names": items.names.tolist(),
        "features": list(placed),
        "coordinate": None if along is None else items.dim,
    }
    arrays |= {"shown": shown.astype(np.int32), "features": np.stack(list(placed.values())).astype(np.float32)}
    arrays |= {} if along is None else {"along": along[shown]}
    places, body = {}, bytearray()
    for name, array in arrays.items():
        body += bytes(-len(body) % 8)
        places[name] = {"dtype": array.dtype.name, "at": len(body), "size": array.size}
        body += np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    header = json.dumps({**meta, "arrays": places}).encode()
    header += b" " * (-(len(header) + 8) % 8)
    whole = len(header).to_bytes(8, "little") + header + body
    return base64.b64encode(gzip.compress(whole, 6, mtime=0)).decode("ascii")
