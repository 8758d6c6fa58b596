"""Statements of several uncertain experts: who shares a view, who is reliable, and the clusters of each view."""

from posterior_consensus.experts.constraints import Constraints
from posterior_consensus.experts.door import as_constraints
from posterior_consensus.experts.record import ExpertViews
from posterior_consensus.experts.views import expert_views

__all__ = ["Constraints", "ExpertViews", "as_constraints", "expert_views"]
