"""What is searched and bounded: a posterior, a loss and limits, and smaller problems that are made of it."""
