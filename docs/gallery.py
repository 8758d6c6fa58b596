"""An example of each figure. `conf.py` takes them apart: pages show the body of each function as a script, and run it.

A function is named as the function or the class whose figure it makes, with `_by_` and a word for a second figure of
it. The first line of its docstring is the question that the figure answers, the second paragraph the alternative text
of the picture. Its body, with those of the imports that it needs, is all that a reader needs.
"""

import numpy as np

import posterior_consensus as pc


def Summary():
    """Which clustering, and how sure is it?

    Similarity matrix of 82 galaxies, number of clusters, credible ball and mean similarity of each galaxy.
    """
    summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
    summary.plot()


def PairsSummary():
    """Which records are one, and what to review first?

    Clusters of records by size, pairs by score, upwards if joined and downwards if not, precision and recall by
    threshold, and the closest decisions.
    """
    summary = pc.summarize(pc.as_pair_similarity(pc.load_example("pairs")), random_seed=1)
    summary.plot()


def LayersSummary():
    """When did the clusters change?

    Flows of 11 firms between the clusters of five years.
    """
    firms = pc.load_example("firms")["posterior"].sel(year=[1935, 1940, 1945, 1950, 1954])
    summary = pc.summarize(pc.as_layers(firms, "z", layer_dim="year"), random_seed=1)
    summary.plot()


def plot_psm():
    """Which items belong together?

    Similarity matrix of 82 galaxies ordered by cluster, with six clusters outlined.
    """
    summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
    pc.plot_psm(summary.draws, summary.partition)


def plot_psm_by_chain():
    """Which pairs do the chains cluster differently?

    Similarity matrices of the galaxies in two chains, with circles at the pair of galaxies that differs most.
    """
    galaxies = pc.load_example("galaxies_not_converged")
    pc.plot_psm(galaxies, pc.consensus_partition(galaxies, random_seed=1), by="chain")


def CredibleBall():
    """How different can the clustering be?

    Four strips of the galaxies, coloured by cluster: partition and bounds of the credible ball.
    """
    summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
    summary.ball.plot()


def PartitionDensity():
    """Are there several good clusterings?

    Distance of draws to the nearest one of higher score, by score; two numbered modes stand apart from all others.
    """
    density = pc.partition_density(pc.load_example("two_answers"), random_seed=1)
    density.plot()


def plot_n_clusters():
    """How many clusters do the draws have?

    Posterior of the number of clusters, 5 to 17: all draws, each chain, and the partition's 6.
    """
    galaxies = pc.load_example("galaxies")
    best = pc.consensus_partition(galaxies, random_seed=1)
    pc.plot_n_clusters(galaxies, best)


def LossPath():
    """Does the clustering depend on the threshold?

    Number of clusters by pair threshold, thick where the partition does not change, with 0.5 marked.
    """
    path = pc.loss_path(pc.load_example("galaxies"), loss="binder", random_seed=1)
    path.plot()


def LossByNClusters():
    """Which number of clusters is best?

    Minimum expected VI by number of clusters with error bars, with a ring at 6, above the posterior of the number.
    """
    numbers = pc.loss_by_n_clusters(pc.load_example("galaxies"), random_seed=1)
    numbers.plot()


def PosteriorComparison():
    """Where do two posteriors differ?

    Plants under a model with three species and one with four: difference of the similarities, and of each plant.
    """
    plants = pc.load_example("two_answers")
    three = pc.as_partition_draws(plants)
    four = pc.as_partition_draws(plants, group="four_species")
    comparison = pc.compare_posteriors(three, four, names=("three species", "four species"), random_seed=1)
    comparison.plot(pc.consensus_partition(three, random_seed=1))


def ItemUncertainty():
    """Which items are uncertain?

    Mean similarity of each galaxy to its own cluster as a bar, and to the nearest other cluster as a point; 77 and 46
    are below the limit 0.5.
    """
    summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
    summary.items.plot()


def Membership():
    """Where else could an item belong?

    Stacked probabilities of each galaxy to be in each cluster or elsewhere, ordered by cluster.
    """
    summary = pc.summarize(pc.load_example("galaxies"), random_seed=1)
    pc.membership(summary).plot()


def PartialPartition():
    """How many items are sure together?

    Share of draws that agree on a set of galaxies, by its size, with the 11 galaxies chosen at 0.8 marked.
    """
    partial = pc.partial_partition(pc.load_example("galaxies"), random_seed=1)
    partial.plot()


def ClusterStability():
    """Which clusters are found again?

    Share of 20 runs of Leiden that have each of eight clusters; two of them are one in 40% of the runs.
    """
    summary = pc.summarize(pc.as_runs(pc.load_example("cells"), "leiden_0.4_*"), random_seed=1)
    summary.clusters.plot()


def Contrast():
    """What differs between the clusters?

    Mean response of patients in three overlapping clusters, corrected in colour, by the reported labels in grey.
    """
    rng = np.random.default_rng(1)
    probability = rng.dirichlet([0.3, 0.3, 0.3], 400)  # of each patient to be in each cluster
    truth, *draws = rng.multinomial(1, probability, (201, 400)).argmax(axis=2)
    response = rng.normal(2.0 * truth)
    found = pc.contrast(np.array(draws), probability.argmax(axis=1), y=response)
    found.plot().set_xlabel("response")


def plot_data():
    """What do the clusters look like in the data?

    Petal length and width of 30 irises, coloured by cluster; a flower unlike its cluster is hollow.
    """
    irises = pc.load_example("iris")
    summary = pc.summarize(irises, random_seed=1)
    pc.plot_data(irises["observed_data"]["petal"], summary.partition, items=summary.items)


def plot_regimes():
    """When does the regime change?

    The Nile's flow by year, high to 1898 and low from then on, and the posterior probability of each regime.
    """
    nile = pc.load_example("nile")
    summary = pc.summarize(nile, random_seed=1)
    pc.plot_regimes(nile["observed_data"]["flow"], summary)


def plot_cluster_profiles():
    """What is typical of each cluster?

    Velocities of the galaxies in a row for each cluster, with median and quartiles.
    """
    galaxies = pc.load_example("galaxies")
    best = pc.consensus_partition(galaxies, random_seed=1)
    pc.plot_cluster_profiles(galaxies["observed_data"]["velocity"], best)


def ClusterSummary():
    """What are the parameters of each cluster?

    Mean petal length of each cluster of irises, with intervals.
    """
    irises = pc.load_example("iris")
    partial = pc.partial_partition(irises, 0.5, random_seed=1)
    mu = irises["posterior"]["mu"].assign_attrs(units="standard deviations")
    parameters = pc.cluster_summary(irises, partial, first_label=0, mu=mu)
    parameters.plot()


def ComponentSimilarity():
    """Do several components form one cluster?

    Distance between components of a mixture within clusters, by the number of clusters, and the numbers in draws.
    """
    galaxies = pc.load_example("galaxies")["posterior"]
    similarity = pc.component_similarity(galaxies["z"], mean=galaxies["mu"], sd=galaxies["sigma"])
    similarity.plot()


def plot_alluvial():
    """Which items move between partitions?

    Flows of galaxies between partitions into 2 to 6 clusters, darker where galaxies change cluster.
    """
    numbers = pc.loss_by_n_clusters(pc.load_example("galaxies"), n_clusters=range(2, 7), random_seed=1)
    pc.plot_alluvial(pc.align_partitions(numbers.partitions))


def Diagnosis():
    """Do the chains agree?

    Traces and rank histograms of scalar summaries of four chains, which overlap.
    """
    diagnosis = pc.diagnose(pc.load_example("galaxies"), random_seed=1)
    diagnosis.plot()


def SequentialDistances():
    """When does the burn-in end?

    VI of each draw of a network to the one before and to the second half of its chain; lines end the burn-in.
    """
    distances = pc.diagnostics.sequential_distances(pc.load_example("block_model"))
    distances.plot()


def NearIndependence():
    """Do items change clusters independently?

    Histograms of the discrepancy of draws from other draws, and from the product of the marginals.
    """
    independence = pc.diagnostics.near_independence(pc.load_example("galaxies"), random_seed=1)
    independence.plot()


def plot_draws_map():
    """Do all chains visit the same partitions?

    Map of the draws by VI, coloured by chain: two modes, which every chain visits, and the partition in one.
    """
    plants = pc.load_example("two_answers")
    best = pc.consensus_partition(plants, random_seed=1)
    pc.plot_draws_map(plants, best)


def plot_items_map():
    """Which clusters are near each other?

    Map of the galaxies by similarity, coloured by cluster; clusters are named, each with its most typical galaxy.
    """
    galaxies = pc.load_example("galaxies")
    best = pc.consensus_partition(galaxies, random_seed=1)
    pc.plot_items_map(galaxies, best)


def ClusterMerges():
    """Which clusters can be merged at little cost?

    Tree of the six clusters, which merge at the expected VI of the partition that is left.
    """
    galaxies = pc.load_example("galaxies")
    best = pc.consensus_partition(galaxies, random_seed=1)
    pc.cluster_merges(galaxies, best).plot()


def Links():
    """Which links are uncertain?

    Numbers of pairs of records by posterior similarity, upwards in one cluster, downwards in different ones, and the
    most uncertain links by name.
    """
    records = pc.load_example("records")
    best = pc.consensus_partition(records, loss="binder", random_seed=1)
    pc.links(records, best).plot()


def plot_cluster_sizes():
    """Are there as many small clusters as in the draws?

    Number of clusters of 1 to 6 records on an axis of square roots: posterior mean, partition and prior mean.
    """
    records = pc.load_example("records")
    best = pc.consensus_partition(records, loss="binder", random_seed=1)
    pc.plot_cluster_sizes(pc.links(records, best, prior=pc.priors.pitman_yor(100.0, 0.7)))


def StableComponents():
    """How many groups stay together at each threshold?

    Number of stable components of the irises by the threshold of similarity, with the threshold 0.95 marked.
    """
    components = pc.stable_components(pc.load_example("iris"), 0.95)
    components.plot()


def PriorSensitivity():
    """Does the clustering depend on the prior?

    Expected number of clusters and excess expected loss of the partition of galaxies, by concentration.
    """
    others = {f"a = {a}": pc.priors.crp(a) for a in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)}
    prior = pc.priors.crp((4, 4))
    sensitivity = pc.prior_sensitivity(pc.load_example("galaxies"), prior, alternatives=others, random_seed=1)
    sensitivity.plot()


def AgreementPath():
    """Do chains differ by mode, or by search noise?

    Averaged Jaccard index of five chains by penalty weight, and the increase of each chain's expected VI.

    The galaxies: chains that mix, and one of a sampler that has not converged.
    """
    mixing = pc.as_partition_draws(pc.load_example("galaxies"))
    stray = pc.as_partition_draws(pc.load_example("galaxies_not_converged"))
    chains = {f"chain {c}": mixing.isel(chain=c) for c in range(4)} | {"another sampler": stray.isel(chain=1)}
    path = pc.agreement.agreement_path(chains, random_seed=1)
    path.plot()


def Particles():
    """Which few partitions stand for all draws?

    Two modes of the plants as strips coloured by cluster, with weights, and where co-members change.
    """
    particles = pc.particles(pc.load_example("two_answers"), random_seed=1)
    particles.plot()


def PartitionModes():
    """How much of each chain is in each mode?

    Partitions of two fitted modes as strips, and the mode of each draw by chain, with the shares of the modes.
    """
    plants = pc.as_partition_draws(pc.load_example("two_answers")).isel(draw=slice(None, None, 5))
    modes = pc.consensus.fit_modes(plants, 2, random_seed=1)
    modes.plot()


def LayerComparison():
    """Which clusters go on, split and merge?

    Flows of 11 firms between the clusters of successive years.
    """
    years = pc.as_layers(pc.load_example("firms"), "z", layer_dim="year")
    pc.compare_layers(years, random_seed=1).plot()


def plot_layer_distances():
    """How far are layers apart?

    Expected VI between the partitions of each two years as a heat map, and by the number of years between them.
    """
    years = pc.as_layers(pc.load_example("firms"), "z", layer_dim="year")
    pc.plot_layer_distances(pc.compare_layers(years, random_seed=1))


def plot_layer_items():
    """Which item moved, and when?

    A row for each year with the cluster of each firm.
    """
    years = pc.as_layers(pc.load_example("firms"), "z", layer_dim="year")
    pc.plot_layer_items(pc.compare_layers(years, random_seed=1))


def LayerStability():
    """Which resolution is stable?

    Stability of runs of Leiden on 700 cells by resolution, numbers of clusters, and flows between the partitions.
    """
    runs = pc.as_runs(pc.load_example("cells"), "leiden_*", groups="leiden_{}_*")
    resolutions = pc.as_layers(runs, layer_dim="resolution")
    pc.compare_layers(resolutions, random_seed=1).plot()


def FactorComparison():
    """Which setting matters most?

    Excess distance of runs of k-means that differ in the number of clusters, or the scale of the data, with its limit
    by chance.
    """
    from scipy.cluster.vq import kmeans2

    rng, runs = np.random.default_rng(1), {}
    points = np.repeat([[0, 0], [3, 0], [0, 3], [4, 4]], 50, axis=0) + rng.normal(size=(200, 2))
    for k in (3, 4, 5):
        for name, scaled in (("raw", points), ("ranks", points.argsort(axis=0).argsort(axis=0))):
            for seed in range(4):
                runs[f"{k}_{name}_{seed}"] = kmeans2(scaled.astype(float), k, minit="++", seed=seed)[1]
    pc.compare_factors(pc.as_runs(runs), "{clusters}_{scale}_*").plot()


def ConsensusTree():
    """How do coarse clusters split into fine ones?

    One tree of 700 cells over seven resolutions: nodes as high as their numbers of cells, coloured by support.
    """
    runs = pc.as_runs(pc.load_example("cells"), "leiden_*", groups="leiden_{}_*")
    pc.consensus_tree(pc.as_layers(runs, layer_dim="resolution"), random_seed=1).plot()


def ExpertViews():
    """Which experts agree, and how reliable are they?

    Sensitivity and specificity of seven experts with intervals, coloured by view.
    """
    by_shape, by_colour = np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)
    rng = np.random.default_rng(1)
    experts = {"alone": rng.integers(3, size=60)}
    for view, labels in (("shape", by_shape), ("colour", by_colour)):
        for error in (0.05, 0.15, 0.3):
            is_wrong = rng.random(60) < error
            experts[f"{view}, {error:.0%} wrong"] = np.where(is_wrong, rng.integers(3, size=60), labels)
    constraints = pc.experts.as_constraints(experts, n_pairs=500, random_seed=1)
    views = pc.experts.expert_views(constraints, n_clusters=4, max_views=2, random_seed=1)
    views.plot()


def plot_expert_views():
    """What clusters does each view see?

    A strip of the items for each of two views, coloured by cluster, whose clusters have little in common.
    """
    by_shape, by_colour = np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)
    rng = np.random.default_rng(1)
    experts = {
        f"{view}, expert {k}": np.where(rng.random(60) < 0.1, rng.integers(3, size=60), labels)
        for view, labels in (("shape", by_shape), ("colour", by_colour))
        for k in range(3)
    }
    constraints = pc.experts.as_constraints(experts, n_pairs=500, random_seed=1)
    views = pc.experts.expert_views(constraints, n_clusters=4, max_views=2, random_seed=1)
    pc.experts.plot_expert_views(views)
