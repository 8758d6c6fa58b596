"""The engine of greedy search."""
