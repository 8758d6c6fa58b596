"""Sentences of a verdict, of which each text takes those it wants, so that none is cut out of another."""

from collections.abc import Iterable
from typing import NamedTuple


class Sentence(NamedTuple):
    """A sentence of a verdict."""

    text: str  # the sentence after its opening
    opening: str = ""  # first words, such as "The chains", which a line of this name leaves out
    is_advice: bool = False  # whether it is a next step for the analyst, which a paper leaves out


def advice(text: str) -> Sentence:
    """A next step for the analyst."""
    return Sentence(text, is_advice=True)


def in_full(sentences: Iterable[Sentence]) -> str:
    """All sentences as one text."""
    return " ".join(f"{one.opening} {one.text}".lstrip() for one in sentences)


def as_line(sentences: Iterable[Sentence]) -> str:
    """All sentences after the opening of the first one."""
    first, *rest = sentences
    return in_full([first._replace(opening=""), *rest])


def without_advice(sentences: Iterable[Sentence]) -> str:
    """The sentences that a paper has, as one text."""
    return in_full(one for one in sentences if not one.is_advice)
