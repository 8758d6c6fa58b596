"""A lower bound of the minimum expected Binder loss: dual ascent, then the linear program, then branching."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from posterior_consensus.bounds.bound import Bound
from posterior_consensus.bounds.branching import Search
from posterior_consensus.bounds.budget import Budget
from posterior_consensus.ensemble.items import Floats
from posterior_consensus.ensemble.pairs import PairSource
from posterior_consensus.ensemble.partitions import Labels, canonical_labels
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results.work import Info
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.progress import track
from posterior_consensus.runtime.tolerances import ROUNDING

BYTES_A_PAIR = 42  # of the costs, and of the packing of triangles
SHARE_OF_RELAXATION = 0.1  # more than half of the narrowing is done by then


@dataclass(frozen=True, kw_only=True)
class BinderBoundInfo(Info):
    """Record of the bound for Binder's loss, and of the method "exact".

    Attributes
    ----------
    n_signatures : int
        Number of signatures: items co-clustered in all draws share one.
    n_packings, n_rounds, n_programs, n_branches : int
        Packings of triangles, rounds of dual ascent, linear programs solved, and branchings.
    n_steps : int
        Steps of the semidefinite relaxation, which is used where a gap is left.
    """

    n_signatures: int
    n_packings: int
    n_rounds: int
    n_programs: int
    n_branches: int
    n_steps: int


def binder_bound(
    source: PairSource,
    loss: PartitionLoss,
    incumbent: Labels,
    *,
    budget: Budget,
    progressbar: bool = False,
) -> Bound:
    """Bound the minimum expected loss from below for Binder's loss with any costs.

    Parameters
    ----------
    source : PairSource
    loss : PartitionLoss
    incumbent : ndarray of shape (n_items,), dtype int32
        The best partition known.
    budget : Budget
        When to stop; the trivial bound is computed in any case.
    progressbar : bool

    Returns
    -------
    Bound
        Its partition is the incumbent or a better one that was found. `info` counts rounds of ascent, linear programs
        solved and branches.

    Notes
    -----
    Joining items i and j costs b P(z_i != z_j), separating them c P(z_i = z_j). The trivial bound is the sum over pairs
    of the smaller cost. The rest is correlation clustering with the difference of the two costs as weight [1]_. Its
    linear program over triangle inequalities is bounded in three ways: by packing of conflicted triangles [2]_, by
    coordinate ascent on the dual, and by the simplex method. For the ascent, the program has a quadratic term that
    keeps the solution near the incumbent. Rows that this solution violates are added, and rows without a multiplier are
    dropped, as in [3]_. Every bound is computed from the Lagrange multipliers alone. It is therefore valid
    whenever the work stops, whatever a solver's tolerance is. Pairs that the bound settles are contracted. If the
    program's solution is fractional the search branches. If all that leaves a gap, as with noisy draws of more than
    a hundred items, a semidefinite relaxation bounds the whole problem too [4]_, for a tenth of the budget.

    References
    ----------
    .. [1] Bansal, Blum and Chawla (2004), Machine Learning 56, 89-113.
       https://doi.org/10.1023/B:MACH.0000033116.57574.95
    .. [2] Lange, Karrenbauer and Andres (2018), Partial optimality and fast lower bounds for weighted correlation
       clustering, Proceedings of Machine Learning Research 80, 2892-2901.
    .. [3] Sonthalia and Gilbert (2022), Project and Forget: solving large-scale metric constrained problems, Journal
       of Machine Learning Research 23(326), 1-54.
    .. [4] Swamy (2004), Correlation clustering: maximizing agreements via semidefinite programming, Proceedings of the
       Fifteenth Annual ACM-SIAM Symposium on Discrete Algorithms, 526-527.
    """
    memory.check(BYTES_A_PAIR * source.n_items**2, f"The bound for Binder's loss of {source.n_items} items")
    together, apart, signature = pair_costs(source, loss)
    _, first = np.unique(signature, return_index=True)
    more = budget.extra(SHARE_OF_RELAXATION)
    search = Search(together, apart, incumbent[first], cost_step(source, loss), budget)
    for _ in track(search.steps(), "Lower bound", progressbar=progressbar):
        pass
    search.relax(more)
    unit = loss.scale(source.n_items) / (source.n_draws or 1)
    return Bound(
        value=float(unit * search.bound),
        method=search.method,
        partition=canonical_labels(search.labels[signature]),
        info=BinderBoundInfo(n_signatures=first.size, **search.counts),
    )


def cost_step(source: PairSource, loss: PartitionLoss) -> float:
    """Common divisor of all costs, where draws have equal weights and costs are simple fractions; else 0.

    A better partition is then better by at least so much.
    """
    given = [loss.numerator[term] for term in "BC"]
    costs = [Fraction(cost).limit_denominator(1000) for cost in given]
    if source.denominator() is None or not np.allclose(given, [float(cost) for cost in costs], rtol=0, atol=ROUNDING):
        return 0.0
    joint = math.lcm(*(cost.denominator for cost in costs))
    return math.gcd(*(int(cost * joint) for cost in costs)) / joint


def pair_costs(source: PairSource, loss: PartitionLoss) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
    """Expected cost of each pair of signatures together and apart (u, u), and every item's signature.

    Costs are multiplied by the number of draws, if it is known: they are integers then if they can be.

    Items that are together in all draws are together in some optimum: the cost of moving some of them to another
    cluster is concave in their number. Each pair's costs are summed over the items of its signatures.
    """
    signature, n_draws = source.signatures(), source.n_draws or 1
    _, first, sizes = np.unique(signature, return_index=True, return_counts=True)
    similarity = source.similarity()
    if first.size < source.n_items:
        similarity = similarity[np.ix_(first, first)]
    similarity *= n_draws
    if source.denominator() is not None:
        np.rint(similarity, out=similarity)  # counts of draws
    together = np.maximum(n_draws - similarity, 0.0)
    apart = similarity
    for costs, term in ((together, "B"), (apart, "C")):
        costs *= loss.numerator[term]
        if first.size < source.n_items:
            costs *= np.multiply.outer(sizes, sizes)
    np.fill_diagonal(together, 0.0)
    np.fill_diagonal(apart, 0.0)
    return together, apart, signature
