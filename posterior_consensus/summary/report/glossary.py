"""The glossary of a report: the terms that it uses, a sentence each."""

import html
import re
from typing import NamedTuple

from posterior_consensus.results.display import capitalized
from posterior_consensus.results.words import Words

_UNSEEN = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


class Term(NamedTuple):
    """A term, its sentence, and a pattern of the texts that use it, with names of :class:`Words` in braces."""

    name: str
    sentence: str
    used: str


_PARTITION = Term("partition", "A division of the items into clusters.", "partition")
_CLUSTER = Term("cluster", "A set of items that a partition puts together; each item is in one.", "cluster")
_OF_DRAWS = (
    _PARTITION,
    _CLUSTER,
    Term("noise", "Items that are in no cluster.", r"\bnoise\b(?! blurs)"),
    Term("loss", "A distance between two partitions, 0 if they are equal.", "loss"),
    Term("{expected} loss", "The mean of the losses between a partition and each {draw}.", "{expected}"),
    Term(
        "partition reported",
        "The partition with the smallest {expected} loss that was found; also called consensus partition.",
        "partition reported|consensus|of this partition",
    ),
    Term("{similarity} of two items", "The share of the {draws} in which they are in one cluster.", "{similarity}"),
    Term(
        "similarity of a cluster",
        "In the table of clusters: the mean over its items of their mean {similarity} {to} the rest of it.",
        r"share\s+similarity",
    ),
    Term(
        "found",
        "A {draw} has a cluster if more than three quarters of the items that are in it or in one of the {draw}'s "
        "clusters are in both: their Jaccard similarity is above 0.75.",
        "found in|found",
    ),
    Term(
        "joined, split",
        "Two clusters are one in a {draw} if one of its clusters has more than half of each; a cluster is split if "
        "none has more than three quarters of it.",
        "are one in|split: |joined",
    ),
    Term("nearest cluster", "Another cluster that an item has the largest mean {similarity} {to}.", "nearest"),
    Term(
        "margin",
        "An item's mean {similarity} {to} the rest of its cluster, less that {to} the nearest cluster; negative if the "
        "item fits better there.",
        "margin",
    ),
    Term(
        "membership",
        "The {probability} that an item is in its cluster, once the clusters of each {draw} are matched to those of "
        "the partition.",
        "membership",
    ),
    Term(
        "{ball}",
        "All partitions within a radius of the partition reported; it is the smallest radius that has the stated share "
        "of the {draws} inside.",
        "{ball}|lie within",
    ),
    Term(
        "bounds of the ball",
        "The {draw} inside that is farthest from the partition reported; and, as vertical bounds, the farthest with "
        "the fewest and with the most clusters.",
        "bounds",
    ),
    Term(
        "{error}",
        "The likely size of the error of a number that comes from these {draws} instead of infinitely many; {mcse} in "
        "short.",
        r"{error}|\b{mcse}\b|\bmcse\b",
    ),
    Term("{size}", "The number of independent {draws} that have the same {error}.", r"{size}|\bess"),
    Term("R-hat", "A comparison of the {chains}: 1 if they agree; above 1.01 they may not.", "r-?hat"),
    Term(
        "ESS (bulk), ESS (tail)",
        "The {size} for the middle of a distribution, and for its 5% and 95% quantiles.",
        r"ess \(bulk\)",
    ),
    Term("pair threshold", "The {similarity} above which two items should share a cluster.", "pair threshold"),
    Term(
        "{mode}s",
        "Parts of the {posterior} around partitions of their own; the weight of a {mode} is its share of the {draws}.",
        r"\b{mode}s?\b",
    ),
    Term("link", "Two items that are in one cluster.", r"\blinks?\b"),
    Term(
        "misclassification",
        "A {draw} has an item in another cluster than the partition reported, once clusters are matched.",
        "misclassification",
    ),
    Term("layer", "One of several partitions of the items, such as that of a year or a resolution.", r"\blayers?\b"),
    Term("flow", "The items in one cluster of a layer and in one of the next layer.", r"\bflows?\b"),
    Term(
        "stability",
        "1 if all {draws} of a layer are equal, and 0 if they are as far apart as random labels with the same sizes of "
        "clusters.",
        "(?<!cluster )stability",  # which a title has
    ),
    Term("adjusted Rand index", "1 for equal partitions, and 0 on average for random ones.", "adjusted rand index"),
)
_OF_PAIRS = (
    _PARTITION._replace(sentence="A division of the records into clusters."),
    _CLUSTER._replace(sentence="Records that the partition says are one entity."),
    Term("scored pair", "Two records with a probability that they match.", "scored pair"),
    Term("match", "Two records of one entity.", "match"),
    Term("threshold, tau", "The score above which joining a pair, by itself, lowers the expected loss.", "tau"),
    Term("component", "Records that pairs with a score above the threshold link, directly or by others.", "component"),
    Term("precision", "The share of matches among the pairs within clusters.", "precision"),
    Term("recall", "The share of matches among scored pairs that are within clusters.", "recall"),
    Term(
        "increase",
        "Increase of the smallest expected loss if the pair is decided the other way; not `exact`: an upper bound.",
        "increase",
    ),
    Term("expected loss", "The expected costs of pairs joined wrongly and of matches missed.", "expected"),
)


def glossary(page: str, words: Words | None) -> str:
    """Return a list of the terms in the text of `page`, in the words for draws; None for scored pairs."""
    spoken = {} if words is None else words._asdict() | {"draws": words.draws, "chains": words.chains}
    seen, listed = _UNSEEN.sub(" ", page), list[str]()
    for term in _OF_PAIRS if words is None else _OF_DRAWS:
        name, sentence, used = (part.format(**spoken) for part in term)
        if re.search(used, seen, re.IGNORECASE):
            listed.append(f"<dt>{html.escape(name)}</dt><dd>{html.escape(capitalized(sentence))}</dd>")
    return f"<dl>{''.join(listed)}</dl>"
