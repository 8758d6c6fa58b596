"""Draws with known truth, and how well any method can do on them: the random perturbation model and its theory."""

from posterior_consensus.simulate.misclassification import misclassification_distance
from posterior_consensus.simulate.perturbation import SimulatedDraws, random_perturbation
from posterior_consensus.simulate.theory import (
    SimilarityMoments,
    basic_error_bound,
    bayes_error,
    chernoff_information,
    draws_needed,
    oracle_error,
    refined_error_bound,
    similarity_moments,
)

__all__ = [
    "SimilarityMoments",
    "SimulatedDraws",
    "basic_error_bound",
    "bayes_error",
    "chernoff_information",
    "draws_needed",
    "misclassification_distance",
    "oracle_error",
    "random_perturbation",
    "refined_error_bound",
    "similarity_moments",
]
