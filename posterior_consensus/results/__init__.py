"""How results are shown, and the records of work."""
