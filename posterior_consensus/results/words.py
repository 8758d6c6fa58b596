"""Words for draws of chains and for independent runs of programs, which texts and figures take from here."""

from typing import NamedTuple


class Words(NamedTuple):
    """What draws, chains and what is computed from them are called in texts and figures."""

    # A draw, or a run; a chain, or a group of runs that the user named; all of them.
    draw: str
    chain: str
    posterior: str
    mode: str  # draws, or runs, around a partition of their own
    # Before "loss": an expectation, or a mean over runs.
    expected: str
    an_expected: str
    # Before and after the name of a loss that a partition minimizes.
    minimized: str
    to_draws: str
    # Share of the draws in which two items are in one cluster, with the preposition that follows.
    similarity: str
    to: str
    # A probability, or a share of runs; the most probable, or most frequent.
    probability: str
    probable: str
    misplaced: str  # after the expected number of items, or the mean number over runs, that are outside their cluster
    # A posterior probability, and a posterior mean, as names of axes and bars.
    on_axis: str
    mean: str
    ball: str  # a ball with a given share of the draws
    # Standard error of a mean, its abbreviation, and the effective number of draws behind it.
    error: str
    mcse: str
    size: str
    enough: float  # effective draws for a reliable standard error, see :func:`display.is_rough`
    number: str  # what the number of clusters says, in continuation of "The number of clusters"
    independent: str  # adjective of runs, after a space; empty for draws
    a_similarity: str  # a similarity, with its article
    has_probability: str  # what a pair has, before the value of its probability

    def either(self, of_draws: str, of_runs: str) -> str:
        """Words of one sentence alone, which stand there: of draws of chains, or of independent runs."""
        return of_runs if self == RUNS else of_draws

    @property
    def draws(self) -> str:
        """Plural of :attr:`draw`."""
        return f"{self.draw}s"

    @property
    def chains(self) -> str:
        """Plural of :attr:`chain`."""
        return f"{self.chain}s"


DRAWS = Words(
    draw="draw",
    chain="chain",
    posterior="posterior",
    mode="mode",
    expected="expected",
    an_expected="an expected",
    minimized="posterior expected",
    to_draws="",
    similarity="posterior similarity",
    to="to",
    probability="probability",
    probable="probable",
    misplaced="expected misplaced",
    on_axis="posterior probability",
    mean="posterior mean",
    ball="credible ball",
    error="Monte Carlo standard error",
    mcse="MCSE",
    size="effective sample size",
    enough=100.0,
    number="need not estimate a number of components; that depends on the prior",
    independent="",
    a_similarity="a posterior similarity",
    has_probability="probability",
)
RUNS = Words(
    draw="run",
    chain="group",
    posterior="runs",
    mode="kind",
    expected="mean",
    an_expected="a mean",
    minimized="mean",
    to_draws=" to the runs",
    similarity="agreement",
    to="with",
    probability="share of runs",
    probable="frequent",
    misplaced="outside their cluster in a run, on average",
    on_axis="share of runs",
    mean="mean over runs",
    ball="ball",
    error="standard error",
    mcse="SE",
    size="effective number of runs",
    enough=10.0,
    number="depends on the programs and their settings",
    independent=" independent",
    a_similarity="an agreement",
    has_probability="a share of runs of",
)
