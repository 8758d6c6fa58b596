"""The random perturbation model: every draw is a copy of one partition with some random labels."""
