"""Lower bounds of the minimum expected loss."""
