"""Agreement between clusterings: how much there is, what more of it costs, and how co-clusterings find it."""
