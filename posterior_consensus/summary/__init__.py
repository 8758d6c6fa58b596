"""From a posterior to a reported partition in one call."""

from posterior_consensus.summary.layers import LayersSummary
from posterior_consensus.summary.pairs import PairsSummary
from posterior_consensus.summary.summarizing import summarize
from posterior_consensus.summary.summary import Summary

__all__ = ["LayersSummary", "PairsSummary", "Summary", "summarize"]
