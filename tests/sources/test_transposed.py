"""Arrays with their axes in another order: a warning where the values tell, and none of ordinary posteriors."""

import warnings

import numpy as np
import pandas as pd
import pytest

import posterior_consensus as pc
from posterior_consensus.sources import transposed
from tests.catalogue.posteriors import DEGENERATE, noisy_draws

N_CHAINS, N_DRAWS, N_ITEMS = 3, 150, 60
LABELS = noisy_draws(np.random.default_rng(1), N_CHAINS * N_DRAWS, N_ITEMS, 4, 0.1)


def renamed(labels, rng):
    """The same partitions, the clusters of each draw named anew."""
    return np.take_along_axis(rng.permuted(np.tile(np.arange(labels.max() + 1), (len(labels), 1)), axis=1), labels, 1)


@pytest.fixture(scope="module")
def fixed():
    """Draws whose labels do not switch, as of items near fixed centres."""
    rng = np.random.default_rng(2)
    truth = np.arange(N_ITEMS) % 4
    return np.where(rng.random((N_CHAINS * N_DRAWS, N_ITEMS)) < 0.2, rng.integers(4, size=N_ITEMS), truth)


def test_items_before_draws(fixed):
    for exchanged in (fixed.T, fixed.T.tolist(), fixed.T.astype(str)):
        with pytest.warns(UserWarning, match=r"`data` .*\(60, 450\) is taken as 60 draws of 450 items.*take its \.T"):
            pc.as_partition_draws(exchanged)
    by_chain = fixed.reshape(N_CHAINS, N_DRAWS, N_ITEMS)
    with pytest.warns(UserWarning, match=r"\(3, 60, 150\) is taken as 180 draws of 150 items.*swap the last two axes"):
        pc.as_partition_draws(by_chain.swapaxes(1, 2))


def test_a_first_look_decides_as_all_rows_do(monkeypatch, rng):
    """It ends the look at plain draws, and at none with their axes exchanged."""
    looks = []
    score = transposed._agreement_score
    monkeypatch.setattr(transposed, "_agreement_score", lambda labels, side: looks.append(side) or score(labels, side))
    draws = noisy_draws(rng, 400, 300, 4, 0.1)
    for labels, n_looks in ((draws, 1), (renamed(draws, rng), 1), (draws.T, 2)):
        looks.clear()
        assert transposed.rows_are_items(labels) == (transposed.row_score(labels) <= -transposed.DECIDED)
        assert len(looks) == n_looks + 1  # and that of the score


@pytest.mark.parametrize("order", [(2, 1, 0), (2, 0, 1), (1, 2, 0), (1, 0, 2)])
def test_chains_that_are_not_first(order):
    shape = tuple(np.array([N_CHAINS, N_DRAWS, N_ITEMS])[list(order)].tolist())
    by_chain = LABELS.reshape(N_CHAINS, N_DRAWS, N_ITEMS)
    with pytest.warns(UserWarning, match=rf"{shape[0]} chains of {shape[1]} draws of {shape[2]} items") as caught:
        pc.as_partition_draws(by_chain.transpose(order))
    assert len(caught) == 1


@pytest.mark.parametrize("order", [(1, 2, 0), (1, 0, 2)], ids=["items, components, draws", "items, draws, components"])
def test_probabilities_of_items_before_draws(order, fixed):
    p = np.where(np.arange(4) == fixed[..., np.newaxis], 0.7, 0.1)
    with pytest.warns(UserWarning, match="taken as 60 draws of 450 items.*put the draws first"):
        pc.as_allocation_probabilities(p.transpose(order))


def test_ordinary_posteriors_do_not_warn(rng):
    with warnings.catch_warnings(action="error"):
        for n_draws, n_items in ((400, 50), (60, 300), (20, 20)):
            for noise in (0.0, 0.1, 0.5):
                labels = noisy_draws(rng, n_draws, n_items, 4, noise)
                large = np.where(np.arange(n_items) % 10 == 0, labels, 0)  # one cluster of nine in ten items
                for draws in (labels, renamed(labels, rng), large, renamed(large, rng), np.zeros_like(labels)):
                    pc.as_partition_draws(draws)
                    pc.as_partition_draws(draws.reshape(2, -1, n_items))
        for labels in DEGENERATE.values():
            pc.as_partition_draws(labels)


def test_half_of_the_posterior_is_one_cluster(rng):
    """The columns then agree: all items have one label in half of the draws, and some other one in the rest."""
    with warnings.catch_warnings(action="error"):
        for n_draws, n_items, n_clusters in ((400, 50, 4), (60, 300, 8), (30, 30, 3)):
            labels = noisy_draws(rng, n_draws, n_items, n_clusters, 0.05)
            for is_one in (rng.random(n_draws) < 0.5, np.arange(n_draws) < n_draws // 2):
                draws = np.where(is_one[:, np.newaxis], 0, labels)
                pc.as_partition_draws(draws)
                nearly = is_one[:, np.newaxis] & (rng.random(draws.shape) < 0.02)
                pc.as_partition_draws(np.where(nearly, rng.integers(n_clusters, size=draws.shape), draws))


def test_chains_with_labels_that_switch(rng):
    """Of several chains, items are the same, and draws are not."""
    labels = renamed(noisy_draws(rng, 4 * 300, 60, 4, 0.1), rng).reshape(4, 300, 60)
    with warnings.catch_warnings(action="error"):
        pc.as_partition_draws(labels)
    with pytest.warns(UserWarning, match=r"\(4, 60, 300\) is taken as 240 draws of 300 items.*swap the last two axes"):
        pc.as_partition_draws(labels.swapaxes(1, 2))


def runs_in_columns(rng, n_items, n_runs):
    """Items x runs of labels numbered by size, as Leiden's are."""
    truth = rng.choice(6, n_items, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    labels = np.where(
        rng.random((n_items, n_runs)) < 0.1, rng.integers(6, size=(n_items, n_runs)), truth[:, np.newaxis]
    )
    for run in labels.T:
        counts = np.bincount(run, minlength=6)
        run[:] = np.argsort(np.argsort(-counts))[run]
    return labels


def test_table_of_cells_and_runs(rng):
    """The column's names do not count, as resolutions: names of rows say it, or else the labels."""
    keys = [f"leiden_{k / 7:.2f}" for k in range(40)]
    cells = pd.Index([f"{'ACGT'[k % 4]}{'CATG'[k // 4 % 4]}{k // 16 * 7}-1" for k in range(600)])
    obs = pd.DataFrame(runs_in_columns(rng, 600, 40).astype(str), cells, keys).astype("category")
    for table in (obs.iloc[:, :3], obs.reset_index(drop=True)):
        with pytest.warns(UserWarning, match=rf"as 600 draws of {table.shape[1]} items.*call as_runs\(table\)"):
            pc.as_partition_draws(table)
    with pytest.raises(ValueError, match=r"`data` .* rows have names, such as 'AC0-1', .* call as_runs\(table\)"):
        pc.as_partition_draws(obs)  # names and labels say so
    pc.as_runs(obs)
    for turned in (obs.T, obs.reset_index(drop=True).T, obs.reset_index(drop=True).T.reset_index(drop=True)):
        with pytest.warns(UserWarning, match=r"`axis`.*taken as 600 runs of 40 items.*give axis=0"):
            pc.as_runs(turned)


def test_runs_along_the_other_dimension(rng):
    labels = runs_in_columns(rng, 300, 20)
    for data in (labels, labels.tolist()):
        with pytest.warns(UserWarning, match=r"`axis`.*300 runs of 20 items.*give axis=1"):
            pc.as_runs(data)
    with pytest.warns(UserWarning, match=r"`data`.*300 draws of 20 items.*as_runs\(data, axis=1\)"):
        pc.as_partition_draws(labels)
    for right in (pc.as_runs(labels.T), pc.as_runs(labels, axis=1)):
        assert right.labels.shape == (20, 300)
