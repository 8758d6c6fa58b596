"""Several partitions in each draw: how far they are apart, and who moves between them."""
