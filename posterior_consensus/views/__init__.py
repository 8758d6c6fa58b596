"""A posterior with more than one answer: several partitions, a density, and what is sure."""
