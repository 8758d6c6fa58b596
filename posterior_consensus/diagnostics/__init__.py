"""Whether the chains agree, and how well the results are known."""

from posterior_consensus.diagnostics.agreement import Gap
from posterior_consensus.diagnostics.comparison import PartitionComparison, compare_partitions
from posterior_consensus.diagnostics.diagnosis import Diagnosis, diagnose
from posterior_consensus.diagnostics.errors import similarity_mcse

__all__ = ["Diagnosis", "Gap", "PartitionComparison", "compare_partitions", "diagnose", "similarity_mcse"]
