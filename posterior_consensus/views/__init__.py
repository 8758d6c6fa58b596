"""More than one answer: what a single partition hides."""
