"""Lower bounds of the minimum expected loss: what no partition can undercut."""
