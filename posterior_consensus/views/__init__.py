"""What one partition cannot say: several answers, other numbers of clusters, another posterior."""
