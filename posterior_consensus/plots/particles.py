"""Plot of particles: partitions, weights and differences."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from posterior_consensus.answers.particles import Particles
from posterior_consensus.plots.colours import ink
from posterior_consensus.plots.frame import Axes, Size, check_result, new_axes
from posterior_consensus.plots.strips import HEIGHT, change, draw_strips
from posterior_consensus.results.display import counted, quantity


def plot_particles(
    particles: Particles, *, order: Any = "clusters", figsize: Size = None, ax: Axes | None = None
) -> Axes:
    """Plot the particles as strips of items, with their weights and differences.

    Parameters
    ----------
    particles : Particles
        Result of :func:`particles`.
    order : {"clusters", "data"}, name of a coordinate, or array_like of shape (n_items,)
        Order of the items: by cluster of the heaviest particle, as in the data, or along a coordinate of the items (its
        name or its values), such as time or position along a genome.
    figsize : (float, float), optional
        Width and height of a new figure in inches.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError
        If `particles` are not Particles.
    ValueError
        If `order` or `figsize` is invalid.

    See Also
    --------
    particles : Compute the particles.
    plot_alluvial : Plot the common items of the particles' clusters.
    plot_draws_map : Plot a map of the draws with the particles.

    Notes
    -----
    Items are ordered by their cluster in the heaviest particle, then in each of the others. Clusters have the colour of
    the heaviest particle's cluster matched to them (most items in common over all one-to-one matchings).
    The bars below show how much an item's co-members change from particle to particle: with C_k(i) the cluster of item
    i in particle k, the mean over pairs of particles, weighted by the product of their weights, of

        1 - n_kl(i) / m_kl(i),

    where n_kl(i) items are in both clusters and m_kl(i) in either. It is 0 if an item's co-members never change.

    In the order of clusters, the axis needs 12 points per cluster. With less, it shows the largest clusters and those
    whose co-members change most, with at most six evenly spaced items each. Beyond 20,000 items, a random sample of
    20,000 is shown. The axis label notes what is shown.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> found = pc.particles([[0, 0, 1, 1]] * 6 + [[0, 1, 0, 1]] * 4, 2, random_seed=1, progressbar=False)
    >>> ax = pc.plot_particles(found)
    >>> [tick.get_text().replace(chr(10), ", ") for tick in ax.get_yticklabels()]
    ['weight 0.60 (0.3), 2 clusters', 'weight 0.40 (0.3), 2 clusters', 'co-members, that change']
    """
    check_result("particles", particles, Particles, "particles")
    partitions = particles.partitions.values
    errors = ["" if np.isnan(error) else f" ({error:.2g})" for error in particles.weights_mcse.values]
    captions = [
        f"weight {weight:.2f}{error}\n{counted(int(number), 'cluster')}"
        for number, weight, error in zip(particles.n_clusters.values, particles.weights.values, errors, strict=True)
    ]
    several = len(partitions) > 1
    if several:
        captions.append("co-members\nthat change")
    ax = new_axes(ax, figsize, 7.2, 1.2 + 0.5 * len(captions))
    shown = draw_strips(ax, list(particles.partitions), captions, "heaviest particle", order)
    if several:
        floor = len(partitions) + HEIGHT
        changes = _changes(partitions, particles.weights.values)[shown]
        edges = np.arange(shown.size + 1) - 0.5
        ax.stairs(floor - 2 * HEIGHT * changes, edges, baseline=floor, fill=True, color=ink(), alpha=0.6)
        ax.hlines([floor], -0.5, shown.size - 0.5, colors=ink(), linewidths=0.8)
    distance = quantity(particles.distance, particles.loss.unit, 3)
    kind = "Wasserstein distance" if particles.loss.metric else "mean loss"
    ax.set_title(f"{kind} from the posterior {distance} ({particles.loss.name})", fontsize="medium")
    return ax


def _changes(partitions: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Share (n,) of each item's co-members that change from particle to particle."""
    total, changes = 0.0, np.zeros(partitions.shape[1])
    for k, other in itertools.combinations(range(len(partitions)), 2):
        weight = weights[k] * weights[other]
        total += weight
        changes += weight * change(partitions[k], partitions[other])
    return changes / total if total > 0 else changes
