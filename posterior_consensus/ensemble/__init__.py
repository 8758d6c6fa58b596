"""What is known of a partition: its items, and how often every two of them are co-clustered."""
