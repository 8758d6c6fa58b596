"""Allocation probabilities from a PyMC model and a posterior without labels; only here is PyMC imported."""

from posterior_consensus.sources.mixtures.allocation import allocation_probabilities as allocation_probabilities
