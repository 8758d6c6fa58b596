"""What several test files need that is no fixture."""

import html
import importlib.util
import re
import sys
import threading
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from posterior_consensus.ensemble.items import Items
from posterior_consensus.ensemble.links import mean_similarities
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.ensemble.scored_pairs import PairConstraints, ScoredPairs
from posterior_consensus.problems.component import Component
from posterior_consensus.sources.conversion import find_source, opened
from posterior_consensus.sources.where import Where

GOOD = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [2, 2, 1, 1], [0, 1, 1, 2]])
CENTRE = [0, 0, 1, 1]


def array(values=GOOD, dims=("draw", "obs"), **coords):
    return xr.DataArray(values, dims=dims, coords=coords, name="z")


ROWS = array(GOOD[np.newaxis], ("chain", "draw", "obs"), chain=[0], draw=[0, 1, 2, 3])


def source_in(data, var_name=None):
    """What the input finds in data, and its description."""
    with opened(data, Where(var_name=var_name)) as found:
        return find_source(*found)


def example(name):
    """Import a script of the folder examples."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba's cache looks the module up by its name
    spec.loader.exec_module(module)
    return module


def check(function, argument, error, parts):
    """Assert that the function refuses the argument by exactly this error, whose message has all these parts."""
    with pytest.raises(error) as raised:
        function(argument)
    assert type(raised.value) is error
    for part in parts:
        assert part in str(raised.value)


def check_all(function, cases):
    """Assert that the function refuses each argument as its case (argument, error, *parts) says."""
    failures = []
    for argument, error, *parts in cases:
        try:
            check(function, argument, error, parts)
        except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 (all are listed below)
            failures.append(f"{argument!r}: {failure}")
    assert not failures, "\n".join(failures)


EMPTY = (  # a picture
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


def draw_nothing(monkeypatch):
    """Let reports have an empty picture in place of each figure."""

    def figure(plot, *_, text, **__):
        text = html.escape(text)
        return f'<figure><img alt="{text}" src="{EMPTY}"><figcaption>{text}</figcaption></figure>'

    for page in ("pairs", "still"):  # imported in this order, lest the first have the empty one for good
        monkeypatch.setattr(f"posterior_consensus.summary.report.{page}.figure", figure)


class Impatient(threading.Timer):
    """A timer whose time is over at once."""

    def start(self):
        self.function(*self.args)


def press_ctrl_c(monkeypatch, owner, name, at):
    """Let a function raise KeyboardInterrupt instead of its call of this number; the list of all its calls."""
    function, calls = getattr(owner, name), []

    def called(*arguments, **options):
        calls.append(arguments)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, called)
    return calls


def written(data, path):
    """Write a Dataset, DataTree or InferenceData to a NetCDF or Zarr file and return its path."""
    if path.suffix != ".zarr":
        data.to_netcdf(str(path))
        return path
    with warnings.catch_warnings():  # Zarr 3 warns of strings and of consolidated metadata, which older readers want
        warnings.simplefilter("ignore")
        data.to_zarr(path)
    return path


def mean_similarity(source, labels):
    """Mean similarity (n, K) of every item to the other members of each cluster."""
    blocks = source.map_links(np.asarray(labels), mean_similarities, np.bincount(labels))
    return np.concatenate([means for _, means in blocks])


def flip_bits(folder, read, expected, message, most):
    """Flip single bits of a file or of each file of a folder, all or so many at random, one at a time.

    `read` must then raise a ValueError with this message, or give what is expected. Returns how often it raised.
    """
    n_noticed, rng = 0, np.random.default_rng(1)
    for file in [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        n_bits = 8 * len(content)
        for bit in rng.choice(n_bits, min(most, n_bits), replace=False):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            file.write_bytes(damaged)
            try:
                assert read() == expected, f"{file}, bit {bit}"
            except ValueError as error:
                assert re.search(message, str(error)), f"{file}, bit {bit}: {error}"  # noqa: PT017 (or no error)
                n_noticed += 1
        file.write_bytes(content)
    assert read() == expected
    return n_noticed


def one_hot(labels, starts):
    """B (n, R): column starts[t] + k marks the items of cluster k of draw t."""
    matrix = np.zeros((labels.shape[1], starts[-1]), int)
    for t, row in enumerate(labels):
        matrix[np.arange(row.size), starts[t] + row] = 1
    return matrix


def scored_pairs(n_items, pairs, unscored=0.0, names=None, **constraints):
    """Scored pairs from {(first, second): probability} of positions, and constraints as arrays of positions."""
    first, second = np.array(list(pairs), np.int64).reshape(-1, 2).T
    values = np.array(list(pairs.values()), np.float64)
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    scored = sparse.coo_array((np.tile(values, 2), ends), (n_items, n_items)).tocsr()
    scored.sort_indices()
    coords = xr.Coordinates() if names is None else xr.Coordinates({"record": names})
    pairs = {name: np.array(one, np.int64) for name, one in constraints.items() if name.endswith("_link")}
    return ScoredPairs(Items(n_items, "record", coords), scored, unscored, PairConstraints(**constraints | pairs))


def random_scored_pairs(rng, n_items):
    """Random scored pairs and a threshold: ties, unscored values, constraints that agree with some partition."""
    every = list(combinations(range(n_items), 2))
    tau, share = round(rng.uniform(0.1, 0.9), 2), rng.choice([0.2, 0.5, 0.9])
    some = [pair for pair in every if rng.random() < share]
    values = rng.random(len(some)) if rng.random() < 0.5 else rng.choice([0.0, 0.3, 0.5, tau, 0.8, 1.0], len(some))
    unscored = float(rng.choice([0.0, 0.0, 0.05, tau, rng.random()]))
    constraints = {}
    if rng.random() < 0.7:
        allowed = rng.integers(3, size=n_items)
        for name, share, is_same in (("must_link", 0.15, True), ("cannot_link", 0.2, False)):
            kept = [(i, j) for i, j in every if (allowed[i] == allowed[j]) == is_same and rng.random() < share]
            constraints[name] = np.reshape(kept, (-1, 2))
        if rng.random() < 0.4:
            data_set = rng.integers(-1, 3, n_items).astype(np.int32)
            for k in range(3):  # a second record of a data set in one of these clusters is free
                own = np.flatnonzero((allowed == k) & (data_set >= 0))
                data_set[np.delete(own, np.unique(data_set[own], return_index=True)[1])] = -1
            constraints["data_set"] = data_set
        if rng.random() < 0.4:
            constraints["max_cluster_size"] = max(int(rng.integers(1, 5)), *np.bincount(allowed))
    return scored_pairs(n_items, dict(zip(some, values, strict=True)), unscored, **constraints), tau


def keeps(partitions, constraints):
    """Which of the partitions (P, n) keep the constraints."""
    kept = np.ones(len(partitions), bool)
    for one, other in constraints.must_link:
        kept &= partitions[:, one] == partitions[:, other]
    for one, other in constraints.cannot_link:
        kept &= partitions[:, one] != partitions[:, other]
    if constraints.data_set is not None:
        for one, other in np.argwhere(np.triu(np.ones((partitions.shape[1],) * 2, bool), 1)):
            if constraints.data_set[one] == constraints.data_set[other] >= 0:
                kept &= partitions[:, one] != partitions[:, other]
    if constraints.max_cluster_size is not None:
        largest = np.array([np.bincount(labels).max() for labels in partitions])
        kept &= largest <= constraints.max_cluster_size
    return kept


COMPONENTS = "chain", "hub", "overlapping", "noisy", "signed"  # kinds of random components


def random_component(rng, n_groups, kind="noisy", several=False):
    """A component of up to so many groups, of `several` records each: true clusters, and pairs between them.

    Kinds of pairs between clusters: "chain", weak links from each to the next; "hub", one record that matches many;
    "overlapping", halves of two clusters; "noisy" ones at random; "signed", pairs that must be apart among noisy ones.
    """
    truth = np.repeat(np.arange(n_groups), rng.integers(2, 7, n_groups))[:n_groups]
    first, second = np.triu_indices(n_groups, 1)
    same, following = truth[first] == truth[second], truth[second] - truth[first] == 1
    many = rng.random(first.size) < 0.2
    between = {"chain": following & many, "hub": first == 0, "overlapping": following | many & (truth[second] % 3 == 0)}
    listed = np.where(same, rng.random(first.size) < 0.85, between.get(kind, many))
    probability = np.where(same, rng.beta(5, 2, first.size), rng.uniform(0.2, 0.9, first.size))
    sizes = rng.integers(1, 4, n_groups) if several else np.ones(n_groups, np.int64)
    weights = np.zeros((n_groups, n_groups))
    weights[first[listed], second[listed]] = probability[listed] - 0.5
    weights += weights.T
    weights *= np.multiply.outer(sizes, sizes)
    if kind == "signed":
        apart = rng.integers(n_groups, size=(2, n_groups // 2))
        pays = np.maximum(weights, 0.0).sum(axis=0)
        never = -(np.minimum(*pays[apart]) + 1)
        weights[*apart], weights[*apart[::-1]] = never, never
        np.fill_diagonal(weights, 0.0)
    labels = connected_components(weights > 0)[1]
    kept = np.flatnonzero(labels == np.bincount(labels).argmax())
    default, weights, sizes = -0.5, weights[np.ix_(kept, kept)], sizes[kept]
    excess = sparse.csr_array(np.where(weights != 0, weights - default * np.multiply.outer(sizes, sizes), 0.0))
    return Component(excess.indptr.astype(np.int64), excess.indices, excess.data, sizes, default)


def weight_of(component, labels):
    """Sum of the dense weights over the pairs that labels join."""
    return float(component.weights()[np.equal.outer(labels, labels)].sum() / 2)


def greatest_weight(component):
    """The most that a partition of a small component joins."""
    partitions = np.concatenate(list(enumerate_partitions(component.n_groups)))
    largest = np.array([np.bincount(labels, component.sizes).max() for labels in partitions])
    partitions = partitions[largest <= component.limit]
    first, second = np.triu_indices(component.n_groups, 1)
    return float((partitions[:, first] == partitions[:, second]).dot(component.weights()[first, second]).max())
