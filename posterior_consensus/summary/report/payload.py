"""What the pictures of a report show, as one block of text that the page's script reads."""

from __future__ import annotations

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
from posterior_consensus.plots.axes import SOME_OF_PAIRS, some_of, with_unit
from posterior_consensus.plots.colours import colours_of, patterns_of
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

Arrays = dict[str, npt.NDArray[Any]]


def payload_of(summary: SummaryRecord) -> str:
    """Return names, partitions, similarities and data in base 64, packed."""
    choices, said = choices_of(summary)
    draws, items = summary.draws, summary.draws.items
    chains, shown = _shown(draws)
    if shown.size < draws.n_items:
        said.insert(0, _about(shown.size, draws.n_items))
    similarities, shares, order = _similarities(draws.of_items(shown), chains, choices[0].labels[shown])
    features, values = _features(summary, shown)
    partitions, rows = _partitions(draws, choices, summary.items)
    names = [str(name) for name in summary.items.names]
    numbers = numbers_of(summary.items.names)
    n_colours = max(int(choice.labels.max()) for choice in choices) + 1
    numbers = np.append(numbers, np.arange(len(numbers), n_colours))
    meta = {
        "dim": items.dim,
        "names": items.names.tolist(),
        "clusters": names + [f"further {k + 1}" for k in range(n_colours - len(names))],
        "colours": colours_of(numbers),
        "markers": [_MARKERS[k] for k in patterns_of(numbers)],
        "chains": [{"name": str(name), "share": share} for (name, _), share in zip(chains, shares, strict=True)],
        "partitions": partitions,
        "features": features,
        "coordinate": _coordinate(items),
        "unit": summary.loss.unit,
        "said": said,
    }
    ranks = {"shown": shown.astype(np.int32), "order": order.astype(np.int32)}
    by_coordinate = {} if meta["coordinate"] is None else {"along": _places(items)[shown].astype(np.float64)}
    return _packed(meta, {**ranks, **by_coordinate, "similarities": similarities, "features": values, **rows})


def _about(shown: int, n_items: int) -> str:
    return (
        f"The pictures show {shown:,} of {n_items:,} items, chosen at random; the search and the table have every item."
    )


def _shown(draws: PartitionDraws) -> tuple[list[tuple[Any, PartitionDraws | None]], npt.NDArray[np.intp]]:
    """Chains with a matrix each, and the items in the pictures: as many as the page has room for."""
    chains: list[tuple[Any, PartitionDraws | None]] = list(draws.by_chain())
    if not 1 < len(chains) <= _MOST_CHAINS:
        chains = [("all", None)]
    most = min(SOME_OF_PAIRS, int(np.sqrt(2 * _MOST_BYTES / len(chains))))
    return chains, some_of(draws.n_items, most, most)


def _similarities(
    draws: PartitionDraws, chains: list[tuple[Any, PartitionDraws | None]], labels: Labels
) -> tuple[npt.NDArray[np.uint8], list[float], npt.NDArray[np.intp]]:
    """Similarities (n_chains, n_pairs) of the pairs above the diagonal, row by row, weights, and an order of items."""
    upper = np.triu_indices(draws.n_items, 1)
    matrices = [draws] if chains[0][1] is None else [chain for _, chain in draws.by_chain()]
    shares = [1.0] if len(matrices) == 1 else [float(draws.weights[rows].sum()) for rows in _rows(draws)]
    steps = [np.rint(_STEPS * chain.shared_similarity[upper]).astype(np.uint8) for chain in matrices]
    return np.stack(steps), shares, item_order(draws.shared_similarity, canonical_labels(labels))


def _rows(draws: PartitionDraws) -> list[npt.NDArray[np.intp]]:
    return [rows for rows in draws.samples.chains if draws.weights[rows].any()]


def _features(summary: SummaryRecord, shown: npt.NDArray[np.intp]) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Names and values (n_features, n_shown) of what places the items: their data, and a map by similarity."""
    names: list[str] = []
    columns: list[Floats] = []
    if summary.observed is not None:
        found = observed_table(summary.observed, summary.consensus)
        unit, kept = str(summary.observed.attrs.get("units", "")), slice(_MOST_FEATURES)
        names += [with_unit(f"feature {name}" if name.isdigit() else name, unit) for name in found.features[kept]]
        columns += list(found.values[shown].T[kept])
    some = summary.draws.of_items(shown)
    places = item_embedding(some, n_axes=min(2, shown.size))
    for k, share in enumerate(places["share"].values):
        names.append(f"map by similarity, axis {k + 1} ({share:.0%} of the variation)")
        columns.append(places.values[:, k])
    return names, np.stack(columns).astype(np.float32)


def _coordinate(items: Items) -> str | None:
    """Name of the items' coordinate if they can stand along it in another order than that of the data."""
    places = _places(items)
    return items.dim if places.size and np.any(np.diff(places) < 0) else None


def _places(items: Items) -> Floats:
    """Numbers or times of the items; none if their names are no such things."""
    index = items.coords[items.dim].to_index() if items.dim in items.coords else None
    if index is None or index.dtype.kind not in "iufMm" or index.hasnans:
        return np.empty(0)
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
    found = items.probability.values, items.nearest.values, items.nearest_probability.values
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
