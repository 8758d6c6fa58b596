"""What else the posterior says of partitions, one question a file."""
