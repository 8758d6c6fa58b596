"""The public names, and a call of every function and figure that takes draws."""

from functools import partial

import numpy as np

import posterior_consensus as pc
from posterior_consensus import consensus, diagnostics
from posterior_consensus.answers.encodings import a_strings, from_a_strings
from posterior_consensus.consensus.impurity import summed_impurity
from posterior_consensus.consensus.refinement import refine_partition

MODULES = ["agreement", "consensus", "diagnostics", "experts", "losses", "priors", "results", "simulate"]
TOP = [name for name in pc.__all__ if not name.startswith("_") and name not in MODULES]


def public_names():
    """The top level's names, and those of its modules that the top level has not."""
    named = {name: getattr(pc, name) for name in TOP}
    for module in MODULES:
        own = getattr(pc, module)
        named |= {f"{module}.{name}": getattr(own, name) for name in own.__all__ if name not in TOP}
    return named


PUBLIC = public_names()
BY_NAME = {name.rpartition(".")[2]: value for name, value in PUBLIC.items()}  # without the module
BY_NAME |= {function.__name__: function for function in (a_strings, from_a_strings, refine_partition, summed_impurity)}
RECORDS = [getattr(pc.results, name) for name in pc.results.__all__]
FIGURES = {name: value for name, value in BY_NAME.items() if name.startswith("plot_")}
FIGURES |= {kind.plot.__name__: kind.plot for kind in RECORDS if getattr(kind, "_figure", "")}

N_CHAINS, LENGTH, N_ITEMS = 2, 40, 7
N_DRAWS = N_CHAINS * LENGTH


OF_DRAWS = ("posterior_similarity_matrix", "averaged_jaccard", "partition_loss", "as_pair_similarity")
OF_DRAWS += ("item_embedding", "similarity_mcse", "sequential_distances", "a_strings")
OF_A_PARTITION = (
    "credible_ball",
    "item_uncertainty",
    "cluster_stability",
    "membership",
    "links",
    "diagnose",
    "plot_psm",
    "plot_n_clusters",
)
OF_A_PARTITION += ("plot_draws_map", "plot_items_map", "summed_impurity", "refine_partition")


def functions_of(draws, partition):
    """Every public function and figure that takes draws, by name."""
    quiet, seeded = {"progressbar": False}, {"random_seed": 1}
    return {
        **{name: partial(BY_NAME[name], draws) for name in OF_DRAWS},
        **{name: partial(BY_NAME[name], draws, partition) for name in OF_A_PARTITION},
        "expected_loss": lambda: [
            pc.expected_loss(draws, [partition, np.zeros(N_ITEMS)], loss=loss) for loss in pc.LOSSES
        ],
        "compare_partitions": lambda: pc.compare_partitions(draws, [partition, np.arange(N_ITEMS)]),
        "partition_density": lambda: pc.partition_density(draws, **seeded),
        "stable_components": lambda: [pc.stable_components(draws), pc.stable_components(draws, 0.6)],
        "agreement_path": lambda: pc.agreement.agreement_path([draws, draws], prices=[0.5], **seeded, **quiet),
        "particles": lambda: [pc.particles(draws, **seeded, **quiet), pc.particles(draws, 3, **seeded, **quiet)],
        "partial_partition": lambda: pc.partial_partition(draws, complete="vi", **seeded),
        "certify": lambda: [
            pc.certify(draws, partition, loss=loss, seconds=0.1, **quiet)
            for loss in ("binder", "vi", "within_variance")
        ],
        "loss_path": lambda: pc.loss_path(draws, loss="vi", values=[0.5, 1.0], **seeded, **quiet),
        "consensus_partition": lambda: pc.consensus_partition(draws, **seeded, **quiet),
        "summarize": lambda: pc.summarize(draws, **seeded, **quiet),
        "near_independence": lambda: diagnostics.near_independence(draws, n_permutations=9),
        "pair_threshold": lambda: consensus.pair_threshold(draws, **seeded, **quiet),
        "from_a_strings": lambda: from_a_strings(a_strings(draws)),
        "random_perturbation_em": lambda: consensus.random_perturbation_em(draws, 3, n_starts=1, **seeded),
        "fit_modes": lambda: consensus.fit_modes(draws, 1, n_clusters=3, n_starts=1, **seeded),
        "plot_modes": lambda: consensus.fit_modes(draws, 1, n_clusters=3, n_starts=1, **seeded).plot(),
        "loss_by_n_clusters": lambda: pc.loss_by_n_clusters(draws, n_clusters=[2, 3], **seeded, **quiet),
        "as_constraints": lambda: pc.experts.as_constraints(draws, **seeded),
        "compare_layers": lambda: pc.compare_layers({"a": draws, "b": draws}, **quiet),
        "consensus_tree": lambda: pc.consensus_tree({"a": draws, "b": draws}, **seeded, **quiet),
        "plot_tree": lambda: pc.consensus_tree({"a": draws, "b": draws}, **seeded, **quiet).plot(),
        "compare_posteriors": lambda: pc.compare_posteriors(draws, draws, n_particles=2, **seeded, **quiet),
        "reweight": lambda: pc.reweight(draws, np.zeros(N_DRAWS), max_pareto_k=np.inf),
        "prior_sensitivity": lambda: pc.prior_sensitivity(draws, pc.priors.crp(1.0), **seeded, **quiet),
        "cluster_merges": lambda: [pc.cluster_merges(draws, partition, loss=loss, **quiet) for loss in ("vi", "nid")],
        "plot_dendrogram": lambda: pc.cluster_merges(draws, partition, **quiet).plot(),
        "plot_credible_ball": lambda: pc.credible_ball(draws, partition).plot(),
        "plot_density_peaks": lambda: pc.partition_density(draws, **seeded).plot(),
        "plot_item_uncertainty": lambda: pc.item_uncertainty(draws, partition).plot(),
        "plot_cluster_stability": lambda: pc.cluster_stability(draws, partition).plot(),
        "plot_particles": lambda: pc.particles(draws, 2, **seeded, **quiet).plot(),
        "plot_partial_partition": lambda: pc.partial_partition(draws, **seeded).plot(),
        "plot_prior_sensitivity": lambda: pc.prior_sensitivity(draws, pc.priors.crp(1.0), **seeded, **quiet).plot(),
        "plot_traces": lambda: pc.diagnose(draws, partition).plot(),
        "plot_membership": lambda: pc.membership(draws, partition).plot(),
        "plot_regimes": lambda: pc.plot_regimes(np.arange(len(partition)), pc.membership(draws, partition)),
        "plot_links": lambda: pc.links(draws, partition).plot(),
        "plot_cluster_sizes": lambda: pc.plot_cluster_sizes(pc.links(draws, partition)),
        "plot_stable_components": lambda: pc.stable_components(draws).plot(),
    }
