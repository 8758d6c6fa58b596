"""Consensus partitions: one estimate from all draws."""

from posterior_consensus.consensus.a_strings import a_strings, from_a_strings
from posterior_consensus.consensus.impurity import summed_impurity
from posterior_consensus.consensus.methods import METHODS
from posterior_consensus.consensus.partition import ConsensusPartition, consensus_partition
from posterior_consensus.consensus.perturbation.fit import PerturbationFit, random_perturbation_em
from posterior_consensus.consensus.perturbation.modes import PartitionModes, fit_modes
from posterior_consensus.consensus.refinement import refine_partition
from posterior_consensus.consensus.selection import Candidate
from posterior_consensus.consensus.threshold import PairThreshold, pair_threshold
from posterior_consensus.results.work import (
    BinderBoundInfo,
    CandidatesInfo,
    ClusterLimits,
    FitInfo,
    ImpurityInfo,
    Info,
    KMeansInfo,
    MatchingInfo,
    MovesInfo,
    NumbersInfo,
    PerturbationInfo,
    PivotInfo,
    RelaxationInfo,
    SearchInfo,
    SeedsInfo,
    Threshold,
    VIBoundInfo,
)

__all__ = [
    "METHODS",
    "BinderBoundInfo",
    "Candidate",
    "CandidatesInfo",
    "ClusterLimits",
    "ConsensusPartition",
    "FitInfo",
    "ImpurityInfo",
    "Info",
    "KMeansInfo",
    "MatchingInfo",
    "MovesInfo",
    "NumbersInfo",
    "PairThreshold",
    "PartitionModes",
    "PerturbationFit",
    "PerturbationInfo",
    "PivotInfo",
    "RelaxationInfo",
    "SearchInfo",
    "SeedsInfo",
    "Threshold",
    "VIBoundInfo",
    "a_strings",
    "consensus_partition",
    "fit_modes",
    "from_a_strings",
    "pair_threshold",
    "random_perturbation_em",
    "refine_partition",
    "summed_impurity",
]
