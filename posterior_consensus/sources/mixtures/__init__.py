"""Allocation probabilities from a PyMC model and a posterior without labels. Only this package imports PyMC."""

from posterior_consensus.sources.mixtures.allocation import allocation_probabilities as allocation_probabilities
