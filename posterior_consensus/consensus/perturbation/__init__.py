"""The random perturbation model: every draw is one partition with some of its labels at random."""
