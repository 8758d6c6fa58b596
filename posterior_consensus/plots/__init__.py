"""Pictures. Each function draws one on Matplotlib axes and returns them."""

from posterior_consensus.plots.agreement_path import plot_agreement_path
from posterior_consensus.plots.alluvial import plot_alluvial
from posterior_consensus.plots.credible_ball import plot_credible_ball
from posterior_consensus.plots.data import plot_data
from posterior_consensus.plots.dendrogram import plot_dendrogram
from posterior_consensus.plots.density_peaks import plot_density_peaks
from posterior_consensus.plots.draws_map import plot_draws_map
from posterior_consensus.plots.experts import plot_expert_views, plot_experts
from posterior_consensus.plots.item_uncertainty import plot_item_uncertainty
from posterior_consensus.plots.items_map import plot_items_map
from posterior_consensus.plots.loss_by_n_clusters import plot_loss_by_n_clusters
from posterior_consensus.plots.loss_path import plot_loss_path
from posterior_consensus.plots.n_clusters import plot_n_clusters
from posterior_consensus.plots.near_independence import plot_near_independence
from posterior_consensus.plots.partial_partition import plot_partial_partition
from posterior_consensus.plots.particles import plot_particles
from posterior_consensus.plots.posterior_comparison import plot_posterior_comparison
from posterior_consensus.plots.profiles import plot_cluster_profiles
from posterior_consensus.plots.psm import plot_psm
from posterior_consensus.plots.psm_by_chain import plot_psm_by_chain
from posterior_consensus.plots.sequence import plot_sequence
from posterior_consensus.plots.stable_components import plot_stable_components
from posterior_consensus.plots.traces import plot_traces

__all__ = [
    "plot_agreement_path",
    "plot_alluvial",
    "plot_cluster_profiles",
    "plot_credible_ball",
    "plot_data",
    "plot_dendrogram",
    "plot_density_peaks",
    "plot_draws_map",
    "plot_expert_views",
    "plot_experts",
    "plot_item_uncertainty",
    "plot_items_map",
    "plot_loss_by_n_clusters",
    "plot_loss_path",
    "plot_n_clusters",
    "plot_near_independence",
    "plot_partial_partition",
    "plot_particles",
    "plot_posterior_comparison",
    "plot_psm",
    "plot_psm_by_chain",
    "plot_sequence",
    "plot_stable_components",
    "plot_traces",
]
