"""From a posterior to a reported clustering in one call."""

from posterior_consensus.summary.summary import Summary, summarize

__all__ = ["Summary", "summarize"]
