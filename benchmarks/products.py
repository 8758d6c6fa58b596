"""Whether a partition of cells that is no product has a smaller expected VI than every product of rows and columns."""

from itertools import product

import numpy as np

import posterior_consensus as pc
from tests.reference import canonical, partitions


def tables(smallest):
    grids = ((2, 2), (2, 3)) if smallest else ((2, 2), (2, 3), (2, 4), (3, 3))
    yield "", (_row(*grid, 20 if smallest else 4000) for grid in grids)


def _row(n_rows, n_columns, n_posteriors):
    """Each posterior has two to eight products as its draws, of random weights or, every other one, of equal ones."""
    rng = np.random.default_rng(1)
    sides = product(partitions(n_rows), partitions(n_columns))
    products = [canonical([f"{r},{c}" for r in rows for c in columns]) for rows, columns in sides]
    cells = np.array(list(partitions(n_rows * n_columns)))
    losses = np.stack([pc.expected_loss([one], cells, loss="vi")["expected_loss"].values for one in products], axis=1)
    are_products = (losses == 0).any(axis=1)
    gains = []
    for k in range(n_posteriors):
        n_draws = min(rng.integers(2, 9), len(products))
        drawn = rng.choice(len(products), n_draws, replace=False)
        weights = rng.dirichlet(np.full(n_draws, 3.0)) if k % 2 else np.full(n_draws, 1 / n_draws)
        expected = losses[:, drawn] @ weights
        gains.append(expected[are_products].min() - expected[~are_products].min())
    return {
        "cells": f"{n_rows} x {n_columns}",
        "partitions": f"{len(cells):,}",
        "products": len(products),
        "posteriors": f"{n_posteriors:,}",
        "with a better partition of another kind": int(np.sum(np.array(gains) > 1e-9)),
    }
