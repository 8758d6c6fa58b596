"""Sample the blocks of a network: a stochastic block model with a Dirichlet process prior, by collapsed Gibbs sampling.

Nodes i and j are linked with a probability that depends on their blocks alone,

    A_ij ~ Bernoulli(p[z_i, z_j]),   p[k, l] ~ Uniform(0, 1),   z ~ Chinese restaurant process(alpha),

and the number of blocks is whatever it is (Kemp, Tenenbaum, Griffiths, Yamada and Ueda 2006, AAAI). The link
probabilities are summed out, and each node's block is drawn in turn given all others.

Run ``python sample_block_model.py`` to simulate a network, sample, and write ``block_model.nc`` with the groups
``posterior`` and ``observed_data``. It takes seconds. All draws are kept, from the first on: the chains start from
random partitions, and the burn-in is there to be seen.
"""

import argparse
import math
from pathlib import Path

import numba
import numpy as np
import xarray as xr

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED = 2023

SIZES = (70, 50, 35, 25, 20)
P_WITHIN, P_BETWEEN = 0.2, 0.05
CHAINS, DRAWS, START_BLOCKS = 4, 1_000, 30
ALPHA = 1.0


def simulate(rng):
    """Simulate a network.

    Parameters
    ----------
    rng : numpy.random.Generator

    Returns
    -------
    links : numpy.ndarray of shape (n, n), dtype uint8
        Symmetric, with zeros on the diagonal.
    blocks : numpy.ndarray of shape (n,), dtype uint8
        Block of each node.
    """
    blocks = np.repeat(np.arange(len(SIZES), dtype=np.uint8), SIZES)
    p = np.where(blocks[:, np.newaxis] == blocks, P_WITHIN, P_BETWEEN)
    upper = np.triu(rng.random(p.shape) < p, 1)
    return (upper | upper.T).astype(np.uint8), blocks


@numba.njit(cache=True)
def sweep(links, z, sizes, edges, alpha, log_factorials, uniforms):
    """Draw the block of every node in turn from its conditional distribution.

    Parameters
    ----------
    links : ndarray of shape (n, n)
    z : ndarray of shape (n,)
        Block of each node, below n; changed in place, as are the next two.
    sizes : ndarray of shape (n + 1,)
        Number of nodes of each block; there is always an empty one.
    edges : ndarray of shape (n + 1, n + 1)
        Number of links between, and within, blocks.
    alpha : float
        Concentration of the Dirichlet process.
    log_factorials : ndarray
        log 0!, log 1!, ... up to one more than the number of pairs of nodes.
    uniforms : ndarray of shape (n,)
        A random number from [0, 1) for each node.
    """
    n = z.size
    to_block = np.zeros(n + 1, np.int64)
    score = np.empty(n + 1)
    for i in range(n):
        to_block[:] = 0
        for j in range(n):
            to_block[z[j]] += links[i, j]
        old = z[i]
        sizes[old] -= 1
        for k in range(n + 1):
            if to_block[k]:
                edges[old, k] -= to_block[k]
                if k != old:
                    edges[k, old] -= to_block[k]
        occupied = np.flatnonzero(sizes)
        empty = 0
        while sizes[empty]:
            empty += 1
        highest = -np.inf
        for at in range(occupied.size + 1):
            k = empty if at == occupied.size else occupied[at]
            score[at] = math.log(alpha if k == empty else sizes[k])
            for other in occupied:
                # With m of N pairs linked, the probability summed over p is m! (N - m)! / (N + 1)!.
                pairs = sizes[k] * (sizes[k] - 1) // 2 if other == k else sizes[k] * sizes[other]
                m, d = edges[k, other], to_block[other]
                more = pairs + sizes[other]
                score[at] += log_factorials[m + d] + log_factorials[more - m - d] - log_factorials[more + 1]
                score[at] -= log_factorials[m] + log_factorials[pairs - m] - log_factorials[pairs + 1]
            highest = max(highest, score[at])
        total = 0.0
        for at in range(occupied.size + 1):
            total += math.exp(score[at] - highest)
            score[at] = total
        at = 0
        while at < occupied.size and score[at] <= uniforms[i] * total:
            at += 1
        new = empty if at == occupied.size else occupied[at]
        z[i] = new
        sizes[new] += 1
        for k in range(n + 1):
            if to_block[k]:
                edges[new, k] += to_block[k]
                if k != new:
                    edges[k, new] += to_block[k]


def sample(links, start, n_draws, alpha, rng):
    """Run one chain.

    Parameters
    ----------
    links : numpy.ndarray of shape (n, n)
    start : numpy.ndarray of shape (n,)
        Blocks to start from.
    n_draws : int
        Number of sweeps over the nodes.
    alpha : float
        Concentration of the Dirichlet process.
    rng : numpy.random.Generator

    Returns
    -------
    numpy.ndarray of shape (n_draws, n), dtype uint8 or wider
        The start, and the blocks after each sweep but the last.
    """
    n = start.size
    z = start.astype(np.int64)
    members = z[:, np.newaxis] == np.arange(n + 1)
    sizes = members.sum(axis=0)
    edges = members.T.astype(np.int64) @ links @ members
    edges[np.diag_indices(n + 1)] //= 2
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n * (n - 1) // 2 + 2)))])
    draws = np.empty((n_draws, n), np.min_scalar_type(n - 1))
    for t in range(n_draws):
        draws[t] = z
        sweep(links, z, sizes, edges, alpha, log_factorials, rng.random(n))
    return draws


def main(out):
    """Simulate, sample and write the file.

    Parameters
    ----------
    out : path_like
        The NetCDF file to write.
    """
    rng = np.random.default_rng(SEED)
    links, blocks = simulate(rng)
    n = blocks.size
    chains = [sample(links, rng.integers(START_BLOCKS, size=n), DRAWS, ALPHA, rng) for _ in range(CHAINS)]
    node = np.arange(n)
    posterior = xr.Dataset({"z": (("chain", "draw", "node"), np.stack(chains))}, {"node": node})
    posterior.attrs = {
        "model": "stochastic block model, Chinese restaurant process on blocks, link probabilities summed out",
        "priors": f"alpha = {ALPHA:g}; p[k, l] ~ Uniform(0, 1)",
        "sampler": f"collapsed Gibbs, {CHAINS} chains of {DRAWS} sweeps from {START_BLOCKS} random blocks, seed {SEED}",
    }
    observed = xr.Dataset({"links": (("node", "node_bis"), links), "block": ("node", blocks)}, {"node": node})
    observed.attrs = {"source": f"simulated: blocks of {SIZES}, links {P_WITHIN} within and {P_BETWEEN} between"}
    tree = xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})
    zlib = {"zlib": True, "complevel": 9, "shuffle": True}
    tree.to_netcdf(out, encoding={"/posterior": {"z": zlib}, "/observed_data": {"links": zlib, "block": zlib}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sample the blocks of a simulated network.")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "block_model.nc", help="file to write")
    main(parser.parse_args().out)
