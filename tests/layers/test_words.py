"""What happens between layers, in words: approved sentences for a clear change, none, and one that is not sure."""

import numpy as np
import pytest
import xarray as xr

import posterior_consensus as pc
from posterior_consensus.layers import words
from posterior_consensus.runtime.arguments import as_generator

BEFORE, AFTER = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 2, 2, 2, 2, 1, 1]
ITEMS = ["Ada", "Ben", "Cem", "Dov", "Eva", "Fay", "Gil", "Hal"]


def compared(n_changed, items=ITEMS, n_chains=4, years=(2001, 2002, 2003, 2004), **options):
    """Layers of draws of which so many change from one partition to the other at each step, or never."""
    draws = []
    for step, n in enumerate(n_changed):
        draws += [[BEFORE] * (step + 1) + [AFTER] * (len(years) - step - 1)] * n
    draws = np.array(draws)
    order = as_generator(3).permutation(len(draws)) if options.pop("mixed", True) else slice(None)
    z = xr.DataArray(
        draws[order].reshape(n_chains, -1, *draws.shape[1:]),
        dims=("chain", "draw", "year", "person"),
        coords={"year": list(years), "person": items},
        name="z",
    )
    layers = pc.as_layers(z, layer_dim="year", **options)
    return pc.compare_layers(layers, random_seed=1, progressbar=False)


CASES = {
    "a clear change": lambda: compared([10, 185, 5]),
    "no change": lambda: compared([10, 5, 0, 185]),
    "not sure when": lambda: compared([75, 65, 60]),
    "chains disagree": lambda: compared([30, 10, 0], mixed=False),
    "few draws": lambda: compared([0, 3, 0], n_chains=1),
    "one step": lambda: compared([180, 20], years=(2001, 2002)),
    "no order": lambda: compared([10, 185, 5], ordered=False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_happened_is_said(case, approved):
    found = CASES[case]()
    approved("verdicts_layers", case, found.in_words())
    assert found.in_words().startswith(found.verdict) and found.verdict[:60] in repr(found)


def test_at_most_four_items_are_named():
    layers = pc.as_layers({"one": [[[0] * 12] * 80], "alone": [[list(range(12))] * 80]}, ordered=True)
    found = pc.compare_layers(layers, progressbar=False)
    assert ": 1 (above 0.99), 2 (above 0.99), 3 (above 0.99), 4 (above 0.99) and 7 more." in found.verdict


def test_layers_without_common_items_say_so(approved):
    z = {dim: xr.DataArray([[[0, 0, 1]] * 8], dims=("chain", "draw", dim)) for dim in ("person", "gene")}
    approved("verdicts_layers", "no common items", pc.compare_layers(z, progressbar=False).in_words())


def test_items_that_come_and_go_and_splits_have_expected_numbers(approved):
    before = xr.DataArray([[BEFORE[:6]] * 8], {"person": ITEMS[:6]}, ("chain", "draw", "person"))
    after = xr.DataArray([[AFTER[1:]] * 5 + [BEFORE[1:]] * 3], {"person": ITEMS[1:]}, ("chain", "draw", "person"))
    estimates = {"old": BEFORE[:6], "new": AFTER[1:]}
    found = pc.compare_layers(
        pc.as_layers({"old": before, "new": after}, ordered=True), partitions=estimates, progressbar=False
    )
    approved("verdicts_layers", "items come and go", found.in_words())


def test_two_layers_without_an_order_are_one_pair(approved):
    found = compared([190, 210], years=(2001, 2002), ordered=False)
    approved("verdicts_layers", "one pair without an order", found.verdict)


def test_two_layers_without_an_order_and_with_few_draws(approved):
    found = compared([3, 9], years=(2001, 2002), ordered=False)
    approved("verdicts_layers", "one pair of few draws", found.verdict)


def test_a_move_that_is_likely_but_not_clear_is_unsure():
    rng = np.random.default_rng(7)
    before = np.repeat([0, 1, 2], 8)
    after = np.where(np.arange(24) == 4, 1, before)
    draws = np.stack([np.tile(one, (4, 200, 1)) for one in (before, after)], axis=2)
    random = rng.random((4, 200, 2)) < 0.5  # it then moves with 0.44 between its clusters, and stays with 0.25
    draws[..., 4] = np.where(random, rng.integers(3, size=random.shape), draws[..., 4])
    found = pc.compare_layers(draws, partitions=[before, after], progressbar=False)
    assert found.overlaps["likely"].values[0].nonzero()[0].tolist() == [4] and not found.overlaps["clear"].any()
    assert found.verdict.startswith("It is unsure whether the clustering changed between 0 and 1")
    assert "Items that would have moved, with their probabilities: 4 (0.7" in found.verdict
    again = pc.results.LayerComparison.from_dataset(found.to_dataset())
    assert again.verdict == found.verdict


def test_more_steps_need_more_errors():
    distances = xr.Dataset({"separation": ("step", [1.9, 2.1, 2.7, 2.9]), "separation_mcse": ("step", np.ones(4))})
    assert words.farther_apart(distances, 1).tolist() == [False, True, True, True]
    assert words.farther_apart(distances, 9).tolist() == [False, False, False, True]
