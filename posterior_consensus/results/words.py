"""Words for draws of chains and for independent runs of programs, which texts and figures take from here."""

from typing import NamedTuple


class Words(NamedTuple):
    """What draws, chains and what is computed from them are called in texts and figures.

    Attributes
    ----------
    draw, chain, posterior : str
        A draw, or a run; a chain, or a group of runs that the user named; all of them.
    group, mode : str
        A group of draws that a search found; another one than that of the partition.
    expected, an_expected : str
        Before "loss": an expectation, or a mean over runs.
    minimized, to_draws : str
        Before and after the name of a loss that a partition minimizes.
    similarity, to : str
        Share of the draws in which two items are in one cluster, with the preposition that follows.
    probability, probable : str
        A probability, or a share of runs; the most probable, or most frequent.
    misplaced : str
        After the expected number of items, or the mean number over runs, that are outside their cluster.
    on_axis, mean : str
        A posterior probability, and a posterior mean, as names of axes and bars.
    ball : str
        A ball with a given share of the draws.
    error, mcse, size : str
        Standard error of a mean, its abbreviation, and the effective number of draws behind it.
    enough : float
        Effective draws for a reliable standard error, see :func:`display.is_rough`.
    number : str
        What the number of clusters says, in continuation of "The number of clusters".
    independent : str
        Adjective of runs, after a space; empty for draws.
    of_chains : str
        Between the number of draws and that of chains.
    together : str
        Probability, or share of the runs, of what :func:`cluster_summary` gives for each cluster.
    several_chains : str
        Chains, or groups of runs, of which a function needs two.
    not_at_maximum, in_a_row : str
        Of an algorithm that has not converged; of items that are linked one after the other. For runs without the words
        "converged" and "chain".
    within : str
        What a list of differences is called that errors may explain.
    chance, by_chance : str
        Error of the draws, or chance; and "from", or "by", it.
    a_similarity : str
        A similarity, with its article.
    with_probability, has_probability : str
        Template before what has a probability; and what a pair has, before its value.
    a_probability : str
        A probability, or a share of runs, with the article that it takes.
    others : str
        The other draws, as a sample from all.
    similarities : str
        Similarities of an item.
    are_misplaced : str
        Template of a sentence on the number of items outside their cluster.
    was, it : str
        Verb and pronoun of :attr:`posterior`.
    stay : str
        Template of a clause on groups that no chain joins.
    no_verdict : str
        Clause where it is unknown whether chains, or groups of runs, agree.
    heading, file : str
        Heading, and name of a file, of what compares chains or groups.
    not_all : str
        Sentence where these disagree.
    after_number : str
        What a methods text adds to :attr:`number`: a source, or what a share of runs is.
    intervals : str
        Intervals of a parameter, after their levels.
    cases : str
        Simulated posteriors, or cases, among which one counts.
    all_or_each : str
        What is evenly taken of: a chain, or all runs.
    """

    draw: str
    chain: str
    posterior: str
    group: str
    mode: str
    expected: str
    an_expected: str
    minimized: str
    to_draws: str
    similarity: str
    to: str
    probability: str
    probable: str
    misplaced: str
    on_axis: str
    mean: str
    ball: str
    error: str
    mcse: str
    size: str
    enough: float
    number: str
    independent: str
    of_chains: str
    together: str
    several_chains: str
    not_at_maximum: str
    in_a_row: str
    within: str
    chance: str
    by_chance: str
    a_similarity: str
    with_probability: str
    has_probability: str
    a_probability: str
    others: str
    similarities: str
    are_misplaced: str
    was: str
    it: str
    stay: str
    no_verdict: str
    heading: str
    file: str
    not_all: str
    after_number: str
    intervals: str
    cases: str
    all_or_each: str

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
    group="group",
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
    of_chains="from",
    together="probability that all items of a cluster are co-clustered",
    several_chains="chains",
    not_at_maximum=", not converged",
    in_a_row="in chains",
    within="within Monte Carlo error",
    chance="Monte Carlo error",
    by_chance="from Monte Carlo error",
    a_similarity="a posterior similarity",
    with_probability="With probability {}",
    has_probability="probability",
    a_probability="probability",
    others="posterior, other draws",
    similarities="posterior similarities",
    are_misplaced="Under the model, {} are expected to be outside the cluster that is matched with theirs.",
    was="was",
    it="it",
    stay="{} not mix between them",
    no_verdict="convergence is unknown",
    heading="Convergence",
    file="convergence",
    not_all="These results must not be reported.",
    after_number=" [miller2014]",
    intervals="credible intervals",
    cases="posteriors",
    all_or_each="a chain",
)
RUNS = Words(
    draw="run",
    chain="group",
    posterior="runs",
    group="kind",
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
    of_chains="of",
    together="share of runs that co-cluster all items of a cluster",
    several_chains="groups of runs",
    not_at_maximum=", not at a maximum yet",
    in_a_row="one after the other",
    within="within two SE",
    chance="chance",
    by_chance="by chance",
    a_similarity="an agreement",
    with_probability="In a share of {} of the runs",
    has_probability="a share of runs of",
    a_probability="a share of runs",
    others="the other runs",
    similarities="agreement",
    are_misplaced="On average, {} are outside the cluster that is matched with theirs in a run.",
    was="were",
    it="them",
    stay="the groups are of different kinds",
    no_verdict="the groups have no verdict",
    heading="Comparison of groups",
    file="comparison",
    not_all="One partition must not stand for all.",
    after_number=". A share of runs is not a probability: it describes how the result varies between runs",
    intervals="of the runs",
    cases="cases",
    all_or_each="the runs",
)
