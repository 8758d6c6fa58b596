"""Statements of several uncertain experts: who shares a view, who is reliable, and the clusters of each view."""

from posterior_consensus.experts.constraints import Constraints
from posterior_consensus.experts.door import as_constraints
from posterior_consensus.experts.graphs import meta_clustering, normalised_cut
from posterior_consensus.experts.metric_learning import itml_k_means
from posterior_consensus.experts.pairwise_k_means import mpck_means
from posterior_consensus.experts.record import ExpertViews
from posterior_consensus.experts.semi_crowd import semi_crowd
from posterior_consensus.experts.views import expert_views

__all__ = [
    "Constraints",
    "ExpertViews",
    "as_constraints",
    "expert_views",
    "itml_k_means",
    "meta_clustering",
    "mpck_means",
    "normalised_cut",
    "semi_crowd",
]
