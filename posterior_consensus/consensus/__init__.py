"""Consensus partitions: one estimate from all draws."""

from posterior_consensus.bounds.binder import BinderBoundInfo
from posterior_consensus.bounds.matching import MatchingInfo
from posterior_consensus.bounds.sdp import RelaxationInfo
from posterior_consensus.bounds.vi import VIBoundInfo
from posterior_consensus.consensus.a_strings import a_strings, from_a_strings
from posterior_consensus.consensus.boem import MovesInfo
from posterior_consensus.consensus.cc_pivot import PivotInfo
from posterior_consensus.consensus.impurity import ImpurityInfo, summed_impurity
from posterior_consensus.consensus.kcc import KMeansInfo
from posterior_consensus.consensus.methods import METHODS
from posterior_consensus.consensus.partition import consensus_partition
from posterior_consensus.consensus.perturbation.fit import PerturbationFit, random_perturbation_em
from posterior_consensus.consensus.perturbation.modes import PartitionModes, fit_modes
from posterior_consensus.consensus.record import ConsensusPartition
from posterior_consensus.consensus.refinement import refine_partition
from posterior_consensus.consensus.rpm_em import PerturbationInfo
from posterior_consensus.consensus.sccc import SeedsInfo
from posterior_consensus.consensus.selection import Candidate, Task
from posterior_consensus.consensus.threshold import PairThreshold, Threshold, pair_threshold
from posterior_consensus.results.work import CandidatesInfo, ClusterLimits, FitInfo, Info, NumbersInfo
from posterior_consensus.search.runs import SearchInfo

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
    "Task",
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
