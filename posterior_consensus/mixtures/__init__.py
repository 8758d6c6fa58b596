"""Allocation probabilities from a PyMC model and a posterior without labels; only here is PyMC imported."""

from posterior_consensus.mixtures.allocation import allocation_probabilities as allocation_probabilities
