"""Allocation probabilities from a PyMC model and a posterior without labels. Only this package imports PyMC."""
