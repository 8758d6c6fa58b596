"""The public names, and a call of every function and figure that takes draws."""

import numpy as np

import posterior_consensus as pc
from posterior_consensus import consensus, diagnostics

MODULES = ["consensus", "diagnostics", "experts", "losses", "priors", "simulate"]
TOP = [name for name in pc.__all__ if not name.startswith("_") and name not in MODULES]


def public_names():
    """The top level's names, and those of its modules that the top level has not."""
    named = {name: getattr(pc, name) for name in TOP}
    for module in MODULES:
        own = getattr(pc, module)
        named |= {f"{module}.{name}": getattr(own, name) for name in own.__all__ if name not in TOP}
    return named


PUBLIC = public_names()

N_CHAINS, LENGTH, N_ITEMS = 2, 40, 7
N_DRAWS = N_CHAINS * LENGTH


def functions_of(draws, partition):
    """Every public function and figure that takes draws, by name."""
    quiet = {"progressbar": False}
    seeded = {"random_seed": 1}
    return {
        "posterior_similarity_matrix": lambda: pc.posterior_similarity_matrix(draws),
        "expected_loss": lambda: [
            pc.expected_loss(draws, [partition, np.zeros(N_ITEMS)], loss=loss) for loss in pc.LOSSES
        ],
        "compare_partitions": lambda: pc.compare_partitions(draws, [partition, np.arange(N_ITEMS)]),
        "credible_ball": lambda: pc.credible_ball(draws, partition),
        "partition_density": lambda: pc.partition_density(draws, **seeded),
        "stable_components": lambda: [pc.stable_components(draws), pc.stable_components(draws, 0.6)],
        "averaged_jaccard": lambda: pc.averaged_jaccard(draws),
        "agreement_path": lambda: pc.agreement_path([draws, draws], prices=[0.5], **seeded, **quiet),
        "pairwise_losses": lambda: pc.pairwise_losses(draws),
        "item_uncertainty": lambda: pc.item_uncertainty(draws, partition),
        "membership": lambda: pc.membership(draws, partition),
        "links": lambda: pc.links(draws, partition),
        "particles": lambda: [pc.particles(draws, **seeded, **quiet), pc.particles(draws, 3, **seeded, **quiet)],
        "partial_partition": lambda: pc.partial_partition(draws, complete="vi", **seeded),
        "certify": lambda: [
            pc.certify(draws, partition, loss=loss, seconds=0.1, **quiet)
            for loss in ("binder", "vi", "within_variance")
        ],
        "loss_path": lambda: pc.loss_path(draws, loss="vi", values=[0.5, 1.0], **seeded, **quiet),
        "consensus_partition": lambda: pc.consensus_partition(draws, **seeded, **quiet),
        "diagnose": lambda: pc.diagnose(draws, partition),
        "summarize": lambda: pc.summarize(draws, **seeded, **quiet),
        "similarity_mcse": lambda: diagnostics.similarity_mcse(draws),
        "near_independence": lambda: diagnostics.near_independence(draws, n_permutations=9),
        "sequential_distances": lambda: diagnostics.sequential_distances(draws),
        "pair_threshold": lambda: consensus.pair_threshold(draws, **seeded, **quiet),
        "as_pair_similarity": lambda: pc.as_pair_similarity(draws),
        "summed_impurity": lambda: consensus.summed_impurity(draws, partition),
        "a_strings": lambda: consensus.a_strings(draws),
        "from_a_strings": lambda: consensus.from_a_strings(consensus.a_strings(draws)),
        "refine_partition": lambda: consensus.refine_partition(draws, partition),
        "random_perturbation_em": lambda: consensus.random_perturbation_em(draws, 3, n_starts=1, **seeded),
        "fit_modes": lambda: consensus.fit_modes(draws, 1, n_clusters=3, n_starts=1, **seeded),
        "loss_by_n_clusters": lambda: pc.loss_by_n_clusters(draws, n_clusters=[2, 3], **seeded, **quiet),
        "as_constraints": lambda: pc.as_constraints(draws, **seeded),
        "compare_posteriors": lambda: pc.compare_posteriors(draws, draws, n_particles=2, **seeded, **quiet),
        "reweight": lambda: pc.reweight(draws, np.zeros(N_DRAWS), max_pareto_k=np.inf),
        "prior_sensitivity": lambda: pc.prior_sensitivity(draws, pc.priors.crp(1.0), **seeded, **quiet),
        "item_embedding": lambda: pc.item_embedding(draws),
        "cluster_merges": lambda: [pc.cluster_merges(draws, partition, loss=loss, **quiet) for loss in ("vi", "nid")],
        "plot_psm": lambda: pc.plot_psm(draws, partition),
        "plot_psm_by_chain": lambda: pc.plot_psm_by_chain(draws),
        "plot_n_clusters": lambda: pc.plot_n_clusters(draws, partition),
        "plot_draws_map": lambda: pc.plot_draws_map(draws, partition),
        "plot_items_map": lambda: pc.plot_items_map(draws, partition),
        "plot_dendrogram": lambda: pc.plot_dendrogram(pc.cluster_merges(draws, partition, **quiet)),
        "plot_credible_ball": lambda: pc.plot_credible_ball(pc.credible_ball(draws, partition)),
        "plot_density_peaks": lambda: pc.plot_density_peaks(pc.partition_density(draws, **seeded)),
        "plot_item_uncertainty": lambda: pc.plot_item_uncertainty(pc.item_uncertainty(draws, partition)),
        "plot_particles": lambda: pc.plot_particles(pc.particles(draws, 2, **seeded, **quiet)),
        "plot_partial_partition": lambda: pc.plot_partial_partition(pc.partial_partition(draws, **seeded)),
        "plot_prior_sensitivity": lambda: pc.plot_prior_sensitivity(
            pc.prior_sensitivity(draws, pc.priors.crp(1.0), **seeded, **quiet)
        ),
        "plot_traces": lambda: pc.plot_traces(pc.diagnose(draws, partition)),
        "plot_membership": lambda: pc.plot_membership(pc.membership(draws, partition)),
        "plot_regimes": lambda: pc.plot_regimes(np.arange(len(partition)), pc.membership(draws, partition)),
        "plot_links": lambda: pc.plot_links(pc.links(draws, partition)),
        "plot_cluster_sizes": lambda: pc.plot_cluster_sizes(pc.links(draws, partition)),
        "plot_stable_components": lambda: pc.plot_stable_components(pc.stable_components(draws)),
    }
