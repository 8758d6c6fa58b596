"""Lower bounds of the least expected loss: what no partition can undercut."""
