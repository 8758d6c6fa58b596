"""A picture for the page of each plot and for the landing page, drawn when the documentation is built.

The first paragraph of a function's docstring is the picture's alternative text.
"""

from functools import cache

import numpy as np
import xarray as xr
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import posterior_consensus as pc


@cache
def posterior(name):
    return pc.load_example(name)


@cache
def summary():
    return pc.summarize(posterior("galaxies"), random_seed=1, progressbar=False)


@cache
def iris():
    return pc.summarize(posterior("iris"), random_seed=1, progressbar=False)


def reports(folder):
    """Write the reports that the landing page links."""
    folder.mkdir(exist_ok=True)
    summary().to_html(folder / "galaxies.html")
    records().to_html(folder / "records.html")


def four_panels():
    summary().plot()


def plot_psm():
    """Similarity matrix of 82 galaxies ordered by cluster, with six clusters outlined."""
    pc.plot_psm(summary().draws, summary().consensus)


def plot_credible_ball():
    """Four strips of the galaxies, coloured by cluster: center and bounds of the credible ball."""
    pc.plot_credible_ball(summary().ball)


def plot_density_peaks():
    """Distance of draws to the nearest one of higher score, by score; one mode stands apart."""
    pc.plot_density_peaks(pc.partition_density(summary().draws, random_seed=1))


def plot_n_clusters():
    """Posterior of the number of clusters, 5 to 17: all draws, each chain, and the partition's 6."""
    pc.plot_n_clusters(summary().draws, summary().consensus)


def plot_loss_path():
    """Number of clusters by pair threshold tau, thick where the partition does not change, with 0.5 marked."""
    pc.plot_loss_path(pc.loss_path(summary().draws, loss="binder", random_seed=1, progressbar=False))


def plot_loss_by_n_clusters():
    """Minimum expected VI by number of clusters with error bars, smallest at 6, above the posterior of the number."""
    pc.plot_loss_by_n_clusters(pc.loss_by_n_clusters(summary().draws, random_seed=1, progressbar=False))


def plot_posterior_comparison():
    """Plants under a model with three species and one with four: difference of the similarities, and of each plant."""
    groups = ("posterior", "four_species")
    three, four = (pc.as_partition_draws(posterior("two_answers"), group=group) for group in groups)
    best = pc.consensus_partition(three, random_seed=1, progressbar=False)
    names = ("three species", "four species")
    pc.plot_posterior_comparison(
        pc.compare_posteriors(three, four, names=names, random_seed=1, progressbar=False), best
    )


def plot_item_uncertainty():
    """Mean similarity of each galaxy to its own cluster as a bar, and to the nearest other cluster as a point."""
    pc.plot_item_uncertainty(summary().items)


def plot_membership():
    """Stacked probabilities of each galaxy to be in each cluster or elsewhere, ordered by cluster."""
    pc.plot_membership(pc.membership(summary().draws, summary().consensus))


def plot_partial_partition():
    """Share of draws that agree on a set of galaxies, by its size, with the 11 galaxies chosen at 0.8 marked."""
    pc.plot_partial_partition(pc.partial_partition(summary().draws, random_seed=1))


def plot_data():
    """Petal length and width of 30 irises, coloured by cluster; a flower unlike its cluster has a smaller point."""
    pc.plot_data(posterior("iris")["observed_data"]["petal"], iris().consensus, items=iris().items)


def plot_regimes():
    """The Nile's flow by year with two regimes shaded, and the posterior probability of each regime.

    It is normal with one change of its mean; draws of the year of change are under flat priors.
    """
    flow = posterior("nile")["observed_data"]["flow"].to_series()
    flow.attrs["units"] = "10⁸ m³"
    before = np.arange(1, flow.size)  # years before the change
    squares = np.array([sum(part.var(ddof=0) * part.size for part in (flow[:k], flow[k:])) for k in before])
    log_density = -np.log(before * (flow.size - before)) / 2 - (flow.size - 2) / 2 * np.log(squares)
    density = np.exp(log_density - log_density.max())
    change = np.random.default_rng(1).choice(before, 400, p=density / density.sum())
    labels = xr.DataArray(np.arange(flow.size) >= change[:, np.newaxis], dims=("sample", "year"))
    draws = pc.as_partition_draws(labels.astype(int).assign_coords(year=flow.index))
    best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
    pc.plot_regimes(flow, pc.membership(draws, best))


def plot_cluster_profiles():
    """Velocities of the galaxies in a row for each cluster, with their quantiles."""
    pc.plot_cluster_profiles(posterior("galaxies")["observed_data"]["velocity"], summary().consensus)


def plot_cluster_summary():
    """Mean petal length of each cluster of irises, with intervals."""
    posterior_of_iris = posterior("iris")["posterior"]
    partial = pc.partial_partition(iris().draws, 0.5, random_seed=1)
    pc.plot_cluster_summary(pc.cluster_summary(posterior("iris"), partial, first_label=0, mu=posterior_of_iris["mu"]))


def plot_component_similarity():
    """Distance between components of a mixture within clusters, by the number of clusters, and the numbers in draws."""
    own = posterior("galaxies")["posterior"]
    pc.plot_component_similarity(pc.component_similarity(own["z"], mean=own["mu"], sd=own["sigma"]))


def plot_alluvial():
    """Flows of galaxies between partitions into 2 to 6 clusters, each aligned with the one before it."""
    numbers = pc.loss_by_n_clusters(summary().draws, n_clusters=range(2, 7), random_seed=1, progressbar=False)
    pc.plot_alluvial(pc.align_partitions(numbers.partitions))


def plot_traces():
    """Traces and rank histograms of scalar summaries of four chains, which overlap."""
    pc.plot_traces(summary().diagnosis)


def plot_sequence():
    """VI of each draw of a network to the one before and to the second half of its chain; lines end the burn-in."""
    pc.diagnostics.plot_sequence(
        pc.diagnostics.sequential_distances(pc.as_partition_draws(posterior("block_model"), "z"))
    )


def plot_near_independence():
    """Histograms of the discrepancy of draws from other draws, and from the product of the marginals."""
    pc.diagnostics.plot_near_independence(pc.diagnostics.near_independence(summary().draws, random_seed=1))


def plot_draws_map():
    """Map of the draws by VI, coloured by chain, with the partition and the bounds of its credible ball."""
    pc.plot_draws_map(summary().draws, summary().consensus, ball=summary().ball)


def plot_items_map():
    """Map of the galaxies by similarity, coloured by cluster, with the exemplar of each cluster."""
    pc.plot_items_map(summary().draws, summary().consensus)


def plot_dendrogram():
    """Tree of the six clusters, which merge at the expected VI of the partition that is left."""
    pc.plot_dendrogram(pc.cluster_merges(summary().draws, summary().consensus, progressbar=False))


@cache
def records():
    return pc.summarize(posterior("records"), loss="binder", modes=False, random_seed=1, progressbar=False)


def plot_links():
    """Pairs of records by their posterior similarity, joined or separated, and the most uncertain links by name."""
    pc.plot_links(records().links)


def plot_cluster_sizes():
    """Number of clusters of 1 to 6 records: posterior mean, partition and mean under the model's prior."""
    found = pc.links(records().draws, records(), prior=pc.priors.pitman_yor(100.0, 0.7))
    pc.plot_cluster_sizes(found)


def plot_stable_components():
    """Number of stable components of the irises by the threshold of similarity, with the threshold 0.95 marked."""
    pc.plot_stable_components(pc.stable_components(iris().draws, 0.95))


def plot_prior_sensitivity():
    """Expected number of clusters and excess expected loss of the partition of galaxies, by concentration."""
    others = {f"a = {a}": pc.priors.crp(a) for a in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)}
    found = pc.prior_sensitivity(summary().draws, pc.priors.crp((4, 4)), alternatives=others, random_seed=1)
    pc.plot_prior_sensitivity(found)


def plot_agreement_path():
    """Averaged Jaccard index of five chains by penalty weight, and the rise of each chain's expected VI.

    The galaxies: chains that mix, and one of a sampler that has not converged.
    """
    stray = pc.as_partition_draws(posterior("galaxies_not_converged")).isel(chain=1)
    chains = {f"chain {c}": summary().draws.isel(chain=c) for c in range(4)} | {"another sampler": stray}
    pc.agreement.plot_agreement_path(pc.agreement.agreement_path(chains, random_seed=1, progressbar=False))


def plot_particles():
    """Three groups of draws of the irises as strips coloured by cluster, with weights, and where co-members change."""
    pc.plot_particles(pc.particles(iris().draws, 3, random_seed=1, progressbar=False))


@cache
def expert_views():
    """Seven experts on 60 items, two views, one expert who is alone."""
    rng = np.random.default_rng(1)
    views = (np.repeat([0, 1, 2], 20), np.tile([0, 1], 30), rng.integers(3, size=60))
    experts = {}
    for view, share in ((0, 0.05), (0, 0.15), (0, 0.3), (1, 0.05), (1, 0.15), (1, 0.3), (2, 0.0)):
        wrong = rng.random(60) < share
        experts[f"expert {len(experts) + 1}"] = np.where(wrong, rng.integers(3, size=60), views[view])
    said = pc.experts.as_constraints(experts, n_pairs=500, random_seed=1)
    return pc.experts.expert_views(said, n_clusters=4, max_views=2, random_seed=1, progressbar=False)


@cache
def years():
    layers = pc.as_layers(posterior("firms"), "z", layer_dim="year")
    return pc.compare_layers(layers, random_seed=1, progressbar=False)


def plot_layers():
    """Flows of 11 firms between the clusters of successive years."""
    pc.plot_layers(years())


def plot_layer_distances():
    """Expected VI between the partitions of each two years as a heat map, and by the number of years between them."""
    pc.plot_layer_distances(years())


def plot_layer_items():
    """A row for each year with the cluster of each firm."""
    pc.plot_layer_items(years())


@cache
def resolutions():
    """Runs of k-means for 2 to 8 clusters of points in five groups."""
    points, _ = make_blobs(300, centers=[[0, 0], [0, 4], [10, 0], [10, 4], [5, 12]], random_state=1)
    numbers = np.repeat(np.arange(2, 9), 20)
    runs = [KMeans(k, n_init=1, random_state=seed).fit_predict(points) for seed, k in enumerate(numbers)]
    layers = pc.as_layers(pc.as_runs(runs, groups=numbers), layer_dim="clusters asked for")
    return pc.compare_layers(layers, random_seed=1, progressbar=False)


def plot_layer_stability():
    """Stability of runs of k-means by the number of clusters asked for, and flows between the partitions."""
    pc.plot_layer_stability(resolutions())


def plot_modes():
    """Partitions of two fitted modes as strips, and the responsibility of each mode for each draw."""
    pc.consensus.plot_modes(
        pc.consensus.fit_modes(iris().draws.isel(draw=slice(None, None, 10)), 2, random_seed=1, progressbar=False)
    )


def plot_experts():
    """Sensitivity and specificity of seven experts with intervals, coloured by view."""
    pc.experts.plot_experts(expert_views())


def plot_expert_views():
    """A strip of the items for each of two views, coloured by cluster."""
    pc.experts.plot_expert_views(expert_views())
