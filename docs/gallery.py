"""A picture for the page of each plot and for the landing page, drawn when the documentation is built."""

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
    pc.plot_psm(summary().draws, summary().consensus)


def plot_credible_ball():
    pc.plot_credible_ball(summary().ball)


def plot_density_peaks():
    pc.plot_density_peaks(pc.partition_density(summary().draws, random_seed=1))


def plot_n_clusters():
    pc.plot_n_clusters(summary().draws, summary().consensus)


def plot_loss_path():
    pc.plot_loss_path(pc.loss_path(summary().draws, loss="binder", random_seed=1, progressbar=False))


def plot_loss_by_n_clusters():
    pc.plot_loss_by_n_clusters(pc.loss_by_n_clusters(summary().draws, random_seed=1, progressbar=False))


def plot_posterior_comparison():
    """The plants of a tutorial, under a model with three species and one with four."""
    groups = ("posterior", "four_species")
    three, four = (pc.as_partition_draws(posterior("two_answers"), group=group) for group in groups)
    best = pc.consensus_partition(three, random_seed=1, progressbar=False)
    pc.plot_posterior_comparison(pc.compare_posteriors(three, four, random_seed=1, progressbar=False), best)


def plot_item_uncertainty():
    pc.plot_item_uncertainty(summary().items)


def plot_membership():
    pc.plot_membership(pc.membership(summary().draws, summary().consensus))


def plot_partial_partition():
    pc.plot_partial_partition(pc.partial_partition(summary().draws, random_seed=1))


def plot_data():
    pc.plot_data(posterior("iris")["observed_data"]["petal"], iris().consensus, items=iris().items)


def plot_regimes():
    """The Nile's flow, normal with one change of its mean; draws of the year of change are under flat priors."""
    flow = posterior("nile")["observed_data"]["flow"].to_series()
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
    pc.plot_cluster_profiles(posterior("galaxies")["observed_data"]["velocity"], summary().consensus)


def plot_cluster_summary():
    posterior_of_iris = posterior("iris")["posterior"]
    partial = pc.partial_partition(iris().draws, 0.5, random_seed=1)
    pc.plot_cluster_summary(pc.cluster_summary(posterior("iris"), partial, first_label=0, mu=posterior_of_iris["mu"]))


def plot_component_similarity():
    own = posterior("galaxies")["posterior"]
    pc.plot_component_similarity(pc.component_similarity(own["z"], mean=own["mu"], sd=own["sigma"]))


def plot_alluvial():
    """Partitions into more and more clusters, each aligned with the one before it."""
    numbers = pc.loss_by_n_clusters(summary().draws, n_clusters=range(2, 7), random_seed=1, progressbar=False)
    pc.plot_alluvial(pc.align_partitions(numbers.partitions))


def plot_traces():
    pc.plot_traces(summary().diagnosis)


def plot_sequence():
    """The network of a tutorial, whose chains have a burn-in."""
    pc.diagnostics.plot_sequence(
        pc.diagnostics.sequential_distances(pc.as_partition_draws(posterior("block_model"), "z"))
    )


def plot_near_independence():
    pc.diagnostics.plot_near_independence(pc.diagnostics.near_independence(summary().draws, random_seed=1))


def plot_draws_map():
    pc.plot_draws_map(summary().draws, summary().consensus, ball=summary().ball)


def plot_items_map():
    pc.plot_items_map(summary().draws, summary().consensus)


def plot_dendrogram():
    pc.plot_dendrogram(pc.cluster_merges(summary().draws, summary().consensus, progressbar=False))


@cache
def records():
    return pc.summarize(posterior("records"), loss="binder", answers=False, random_seed=1, progressbar=False)


def plot_links():
    """Links between records of people."""
    pc.plot_links(records().links)


def plot_cluster_sizes():
    """The same records; the prior is that of the model."""
    found = pc.links(records().draws, records(), prior=pc.priors.pitman_yor(100.0, 0.7))
    pc.plot_cluster_sizes(found)


def plot_stable_components():
    pc.plot_stable_components(pc.stable_components(iris().draws, 0.95))


def plot_prior_sensitivity():
    others = {f"a = {a}": pc.priors.crp(a) for a in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)}
    found = pc.prior_sensitivity(summary().draws, pc.priors.crp((4, 4)), alternatives=others, random_seed=1)
    pc.plot_prior_sensitivity(found)


def plot_agreement_path():
    """The galaxies: chains that mix, and one of a sampler that has not converged."""
    stray = pc.as_partition_draws(posterior("galaxies_not_converged")).isel(chain=1)
    chains = {f"chain {c}": summary().draws.isel(chain=c) for c in range(4)} | {"another sampler": stray}
    pc.agreement.plot_agreement_path(pc.agreement.agreement_path(chains, random_seed=1, progressbar=False))


def plot_particles():
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
    pc.plot_layers(years())


def plot_layer_distances():
    pc.plot_layer_distances(years())


def plot_layer_items():
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
    pc.plot_layer_stability(resolutions())


def plot_modes():
    pc.consensus.plot_modes(
        pc.consensus.fit_modes(iris().draws.isel(draw=slice(None, None, 10)), 2, random_seed=1, progressbar=False)
    )


def plot_experts():
    pc.experts.plot_experts(expert_views())


def plot_expert_views():
    pc.experts.plot_expert_views(expert_views())
