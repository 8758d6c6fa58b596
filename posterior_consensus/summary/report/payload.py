"""The data of the interactive pictures, as one block of text that the page's script reads."""

import base64
import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.embedding import item_embedding
from posterior_consensus.answers.item_uncertainty import ItemUncertainty
from posterior_consensus.ensemble.draws import PartitionDraws
from posterior_consensus.ensemble.items import Floats, Items, numbers_of
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.evaluate.similarity import own_and_nearest
from posterior_consensus.plots.colours import colours_of, patterns_of
from posterior_consensus.plots.frame import SOME_OF_PAIRS, some_of, with_unit
from posterior_consensus.plots.observed import observed_table
from posterior_consensus.plots.psm import item_order
from posterior_consensus.summary.record import SummaryRecord
from posterior_consensus.summary.report.choices import Choice, choices_of

_MOST_CHAINS = 8  # with a matrix each; more are shown as one
_MOST_BYTES = 4_000_000  # of similarities, before they are packed
_MOST_FEATURES = 30
_STEPS = 255  # of a similarity
_TEN_THOUSANDTHS, _MISSING = 10_000, 65_535  # of what the table shows
_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus")

_ABOUT = "The pictures show {:,} of {:,} items, chosen at random; the search and the table include every item."

_ALL = "all"  # chains, where they have one matrix
_AS_ONE = f"The chains are shown together, because there are more than {_MOST_CHAINS}."

Arrays = dict[str, npt.NDArray[Any]]


def payload_of(summary: SummaryRecord, *, progressbar: bool) -> str:
    """Return names, partitions, similarities and data in base 64, packed."""
    choices, said = choices_of(summary, progressbar=progressbar)
    draws, items = summary.draws, summary.draws.items
    chains = _chains(draws)
    shown = _shown(draws.n_items, len(chains))
    if shown.size < draws.n_items:
        said.insert(0, _ABOUT.format(shown.size, draws.n_items))
    if list(chains) == [_ALL]:
        said.insert(0, _AS_ONE)
    data = _data(summary, shown)
    placed = data | _map(draws.of_items(shown))
    along = _along(items)
    listed, of_items = _partitions(draws, choices, summary.items)
    meta = {
        **_clusters(summary.items, choices),
        "names": items.names.tolist(),
        "chains": [{"name": str(name), "share": share} for name, share in chains.items()],
        "partitions": listed,
        "features": list(placed),
        "n_data": len(data),
        "n_clusters": summary.consensus.n_clusters,
        "coordinate": None if along is None else items.dim,
        "said": said,
    }
    arrays = {
        "shown": shown.astype(np.int32),
        **_similarities(draws.of_items(shown), len(chains), choices[0].labels[shown]),
        "features": np.stack(list(placed.values())).astype(np.float32),
        **({} if along is None else {"along": along[shown]}),
        **of_items,
    }
    return _packed(meta, arrays)


def _chains(draws: PartitionDraws) -> dict[Any, float]:
    """Share of the weight of each chain that has a matrix of its own; one entry for all if they are too many."""
    weights = {draws.samples.chain[rows[0]]: float(draws.weights[rows].sum()) for rows in draws.samples.chains}
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    return weights if len(weights) <= _MOST_CHAINS else {_ALL: 1.0}


def _shown(n_items: int, n_matrices: int) -> npt.NDArray[np.intp]:
    most = min(SOME_OF_PAIRS, int(np.sqrt(2 * _MOST_BYTES / n_matrices)))
    return some_of(n_items, most, most)


def _similarities(draws: PartitionDraws, n_matrices: int, labels: Labels) -> Arrays:
    """Similarities (n_matrices, n_pairs) of the pairs above the diagonal, row by row, and an order of the items."""
    upper = np.triu_indices(draws.n_items, 1)
    matrices = [draws] if n_matrices == 1 else [chain for _, chain in draws.by_chain()]
    steps = [np.rint(_STEPS * chain.shared_similarity[upper]).astype(np.uint8) for chain in matrices]
    order = item_order(draws.shared_similarity, canonical_labels(labels))
    return {"similarities": np.stack(steps), "order": order.astype(np.int32)}


def _clusters(items: ItemUncertainty, choices: list[Choice]) -> dict[str, list[str]]:
    """Name, colour and marker of each cluster, those of the partition reported first."""
    n_named, n_clusters = len(items.names), max(int(choice.labels.max()) for choice in choices) + 1
    numbers = np.append(numbers_of(items.names), np.arange(n_named, n_clusters))
    return {
        "clusters": [*map(str, items.names), *(f"further {k + 1}" for k in range(n_clusters - n_named))],
        "colours": colours_of(numbers),
        "markers": [_MARKERS[k] for k in patterns_of(numbers)],
    }


def _data(summary: SummaryRecord, shown: npt.NDArray[np.intp]) -> dict[str, Floats]:
    """Observed values of the items shown, by feature."""
    if summary.observed is None:
        return {}
    found = observed_table(summary.observed, summary.consensus)
    unit = str(summary.observed.attrs.get("units", ""))
    names = [with_unit(f"feature {name}" if name.isdigit() else name, unit) for name in found.features]
    return dict(list(zip(names, found.values[shown].T, strict=True))[:_MOST_FEATURES])


def _map(draws: PartitionDraws) -> dict[str, Floats]:
    """Places of the items on a map by similarity; a single item lies at the origin."""
    places = item_embedding(draws, n_axes=min(2, draws.n_items))
    shares = np.append(places["share"].values, 0.0)[:2]
    columns = np.column_stack([places.values, np.zeros(draws.n_items)])[:, :2].T
    names = [f"map by similarity, axis {k + 1} ({share:.0%} of the variation)" for k, share in enumerate(shares)]
    return dict(zip(names, columns, strict=True))


def _along(items: Items) -> Floats | None:
    """Numbers or times that name the items, if these are in another order than the data."""
    index = items.coords[items.dim].to_index() if items.dim in items.coords else None
    if index is None or index.dtype.kind not in "iufMm" or index.hasnans or index.is_monotonic_increasing:
        return None
    return index.to_numpy().astype(np.float64)


def _partitions(
    draws: PartitionDraws, choices: list[Choice], items: ItemUncertainty
) -> tuple[list[dict[str, Any]], Arrays]:
    """The choices, each with its row in the arrays, in which equal partitions have one."""
    rows: dict[bytes, int] = {}
    columns: list[Arrays] = []
    listed = list[dict[str, Any]]()
    for choice in choices:
        labels = choice.labels.astype(np.int32)
        row = rows.setdefault(labels.tobytes(), len(rows))
        if row == len(columns):
            columns.append(_of_reported(labels, items) if row == 0 else _of_other(labels, draws))
        listed.append({"kind": choice.kind, "value": choice.value, "row": row, "words": choice.words})
    return listed, {name: np.stack([column[name] for column in columns]) for name in columns[0]}


def _of_reported(labels: Labels, items: ItemUncertainty) -> Arrays:
    membership = np.full(labels.size, np.nan) if items.membership is None else items.membership.values
    found = items.similarity.values, items.nearest.values, items.nearest_similarity.values
    return _row(labels, items.cluster.values, *found, membership)


def _of_other(labels: Labels, draws: PartitionDraws) -> Arrays:
    """Without the probability of the own cluster, which takes long for each of many partitions."""
    clusters = canonical_labels(labels)
    return _row(labels, clusters, *own_and_nearest(draws, clusters), np.full(labels.size, np.nan))


def _row(labels: Labels, clusters: Labels, own: Floats, nearest: Labels, other: Floats, membership: Floats) -> Arrays:
    """What the table shows of one partition; `nearest` numbers its `clusters`, the page its `labels`."""
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


def _packed(meta: dict[str, Any], arrays: Arrays) -> str:
    """A header in JSON, whose length comes first, and the bytes of the arrays, each at a multiple of eight."""
    places, body = {}, bytearray()
    for name, array in arrays.items():
        body += bytes(-len(body) % 8)
        places[name] = {"dtype": array.dtype.name, "at": len(body), "size": array.size}
        body += np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    header = json.dumps({**meta, "arrays": places}).encode()
    header += b" " * (-(len(header) + 8) % 8)
    whole = len(header).to_bytes(8, "little") + header + body
    return base64.b64encode(gzip.compress(whole, 6, mtime=0)).decode("ascii")
