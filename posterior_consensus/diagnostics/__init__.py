"""Whether the chains agree, and how well the results are known."""

from posterior_consensus.diagnostics.comparison import PartitionComparison, compare_partitions
from posterior_consensus.diagnostics.diagnosis import Diagnosis, diagnose
from posterior_consensus.diagnostics.errors import similarity_mcse
from posterior_consensus.diagnostics.excess import ExcessLoss
from posterior_consensus.diagnostics.independence import NearIndependence, near_independence
from posterior_consensus.diagnostics.sequence import SequentialDistances, sequential_distances
from posterior_consensus.diagnostics.stacking import stacking_weights
from posterior_consensus.evaluate.chain_gap import Gap

__all__ = [
    "Diagnosis",
    "ExcessLoss",
    "Gap",
    "NearIndependence",
    "PartitionComparison",
    "SequentialDistances",
    "compare_partitions",
    "diagnose",
    "near_independence",
    "sequential_distances",
    "similarity_mcse",
    "stacking_weights",
]
