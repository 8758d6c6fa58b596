"""Variational inference of the views from one start: closed-form updates, and ascents of each view's memberships."""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import betaln, digamma, softmax

from posterior_consensus.experts.memberships import Floats, Memberships

_RELIABILITY = 10.0, 1.0  # prior of sensitivity and specificity, each a beta distribution
_CONCENTRATION = 1.0  # of the views
_ROUNDS = 200
_SETTLED = 1e-6  # relative rise of the bound at which a run ends
_MOVED = 0.01  # change of an expert's probability of a view, after which memberships are also proposed anew
_INNER = 50  # most rounds of the closed forms between two ascents


class Statements(NamedTuple):
    """Constraints of M experts on P distinct pairs, with their counts.

    Attributes
    ----------
    pairs : int array of shape (P, 2)
        Positions of the items of each pair, in ascending order.
    must, cannot : csr_array of shape (M, P)
        Number of must-links and cannot-links of each expert on each pair.
    n_items : int
        Number of items.
    """

    pairs: npt.NDArray[np.intp]
    must: csr_array
    cannot: csr_array
    n_items: int


@dataclass
class Fit:
    """Variational parameters after a run.

    Attributes
    ----------
    sensitivity, specificity : float array of shape (M, 2)
        Parameters of beta distributions.
    view : float array of shape (M, G)
        Probabilities of the views of each expert.
    sticks : float array of shape (G, 2)
        Parameters of the beta distributions of stick breaking.
    parameters : list of float arrays
        Parameters of the memberships of each view.
    bound : float
        Evidence lower bound.
    trace : list of float
        The bound after each round.
    """

    sensitivity: Floats
    specificity: Floats
    view: Floats
    sticks: Floats
    parameters: list[Floats]
    bound: float = -np.inf
    trace: list[float] = field(default_factory=list)


class Inference:
    """The model of experts in views, given their constraints.

    Parameters
    ----------
    statements : Statements
        The constraints.
    memberships : Memberships
        The model of the memberships.
    n_views : int
        Largest number of views.
    """

    def __init__(self, statements: Statements, memberships: Memberships, n_views: int) -> None:
        self._statements, self._memberships, self._n_views = statements, memberships, n_views
        self._n_must = np.asarray(statements.must.sum(axis=1), np.float64)
        self._n_cannot = np.asarray(statements.cannot.sum(axis=1), np.float64)
        self._entries = np.concatenate([statements.pairs, statements.pairs[:, ::-1]]).T

    def run(self, rng: np.random.Generator, stop: npt.NDArray[np.uint8], one_each: bool) -> Fit:
        """Ascend from a random start until the bound converges.

        With `one_each`, every view begins with one expert, and the other experts have equal probabilities of all views.
        """
        n_experts, n_views = self._n_must.size, self._n_views
        view = rng.dirichlet(np.ones(n_views), n_experts)
        if one_each:
            view[:] = 1 / n_views
            view[rng.permutation(n_experts)[:n_views]] = np.eye(n_views)
        fit = Fit(
            sensitivity=np.tile(_RELIABILITY, (n_experts, 1)),
            specificity=np.tile(_RELIABILITY, (n_experts, 1)),
            view=view,
            sticks=np.ones((n_views, 2)),
            parameters=[self._memberships.start(rng) for _ in range(n_views)],
        )
        return self._settled(fit, rng, stop)

    def joined(self, fit: Fit, rng: np.random.Generator, stop: npt.NDArray[np.uint8]) -> Fit:
        """Merge two views if this raises the bound, until no merge does."""
        if stop[0]:
            return fit
        for one, other in combinations(np.unique(fit.view.argmax(axis=1)), 2):
            view = fit.view.copy()
            view[:, one] += view[:, other]
            view[:, other] = 0.0
            tried = self._settled(replace(fit, view=view, parameters=list(fit.parameters), trace=[]), rng, stop)
            if tried.bound > fit.bound + _SETTLED * abs(fit.bound):
                return self.joined(tried, rng, stop)
        return fit

    def _settled(self, fit: Fit, rng: np.random.Generator, stop: npt.NDArray[np.uint8]) -> Fit:
        """Ascend until the bound converges."""
        moved = True
        for _ in range(_ROUNDS):
            self._climb(fit, rng, far=moved)
            _largest_first(fit)
            together, before = self.together(fit), fit.view
            self._update(fit, together)
            moved = bool(np.abs(fit.view - before).max() > _MOVED)
            fit.bound = self._bound(fit, together)
            fit.trace.append(fit.bound)
            if stop[0] or (len(fit.trace) > 1 and fit.bound - fit.trace[-2] < _SETTLED * abs(fit.bound)):
                break
        return fit

    def together(self, fit: Fit) -> Floats:
        """Probability (G, P) that the items of each pair share a cluster, by view."""
        first, second = self._statements.pairs.T
        soft = [self._memberships.soft(parameters) for parameters in fit.parameters]
        return np.stack([np.einsum("pk,pk->p", one[first], one[second]) for one in soft])

    def links(self, fit: Fit) -> list[csr_array]:
        """Weights of the constraints on pairs as a symmetric matrix, by view."""
        in_must, in_cannot = weights_of(fit)
        must, cannot = self._statements.must, self._statements.cannot
        by_view = (must.T @ (fit.view * in_must) + cannot.T @ (fit.view * in_cannot)).T  # (G, P)
        shape = self._statements.n_items, self._statements.n_items
        return [csr_array((np.tile(weights, 2), self._entries), shape) for weights in by_view]

    def _climb(self, fit: Fit, rng: np.random.Generator, far: bool) -> None:
        """Raise the terms of each view, with `far` also from proposed memberships."""
        for view, links in enumerate(self.links(fit)):
            found = self._memberships.climbed(fit.parameters[view], links)
            other = self._memberships.proposed(links, rng) if far else None
            if other is not None:
                other = self._memberships.climbed(other, links)
                if self._of_view(other, links) > self._of_view(found, links):
                    found = other
            fit.parameters[view] = found

    def _of_view(self, parameters: Floats, links: csr_array) -> float:
        soft = self._memberships.soft(parameters)
        return 0.5 * float((soft * (links @ soft)).sum()) + self._memberships.own_terms(parameters)

    def counts(self, fit: Fit, together: Floats) -> tuple[Floats, Floats]:
        """Expected numbers (M, G) of must-links and of cannot-links between co-clustered items, by view."""
        return self._statements.must @ together.T, self._statements.cannot @ together.T

    def _update(self, fit: Fit, together: Floats) -> None:
        """Update experts and sticks by closed forms, in turn until convergence."""
        must, cannot = self.counts(fit, together)
        hit, miss = _RELIABILITY
        for _ in range(_INNER):
            before = fit.view
            kept, lost = (fit.view * must).sum(axis=1), (fit.view * cannot).sum(axis=1)
            fit.sensitivity = np.column_stack([hit + kept, miss + lost])
            fit.specificity = np.column_stack([hit + self._n_cannot - lost, miss + self._n_must - kept])
            sizes = fit.view.sum(axis=0)
            behind = sizes[::-1].cumsum()[::-1] - sizes
            fit.sticks = np.column_stack([1 + sizes, _CONCENTRATION + behind])
            in_must, in_cannot = weights_of(fit)
            fit.view = softmax(in_must * must + in_cannot * cannot + expected_log_shares(fit.sticks), axis=-1)
            if np.abs(fit.view - before).max() < 1e-8:
                break

    def _bound(self, fit: Fit, together: Floats) -> float:
        """The evidence lower bound."""
        must, cannot = self.counts(fit, together)
        in_must, in_cannot = weights_of(fit)
        right, wrong = expected_logs(fit.specificity)
        likelihood = (fit.view * (in_must * must + in_cannot * cannot)).sum()
        likelihood += self._n_must @ wrong + self._n_cannot @ right
        divergence = beta_divergence(fit.sensitivity, _RELIABILITY) + beta_divergence(fit.specificity, _RELIABILITY)
        divergence += beta_divergence(fit.sticks, (1.0, _CONCENTRATION))
        log_view = np.log(np.maximum(fit.view, np.finfo(float).tiny))
        chosen = (fit.view * (expected_log_shares(fit.sticks) - log_view)).sum()
        within = sum(self._memberships.own_terms(parameters) for parameters in fit.parameters)
        return float(likelihood - divergence + chosen + within)


def _largest_first(fit: Fit) -> None:
    """Sort the views by their numbers of experts, the order that maximizes the bound of stick breaking."""
    order = np.argsort(-fit.view.sum(axis=0), kind="stable")
    fit.view = fit.view[:, order]
    fit.parameters = [fit.parameters[view] for view in order]


def expected_logs(parameters: Floats) -> tuple[Floats, Floats]:
    """Expected log x and log (1 - x) of beta variables x with parameters (M, 2)."""
    both = digamma(parameters) - digamma(parameters.sum(axis=1, keepdims=True))
    return both[:, 0], both[:, 1]


def expected_log_shares(sticks: Floats) -> Floats:
    """Expected log probabilities of the views under stick breaking."""
    taken, left = expected_logs(sticks)
    shares: Floats = taken + np.concatenate([[0.0], left.cumsum()[:-1]])
    return shares


def weights_of(fit: Fit) -> tuple[Floats, Floats]:
    """Weights (M, 1) of an expert's must-links and cannot-links in the log odds that two items are co-clustered."""
    hit, miss = expected_logs(fit.sensitivity)
    right, wrong = expected_logs(fit.specificity)
    return (hit - wrong)[:, np.newaxis], (miss - right)[:, np.newaxis]


def beta_divergence(parameters: Floats, prior: tuple[float, float]) -> float:
    """Divergence of beta distributions from their prior, summed."""
    first, second = parameters.T
    total = digamma(first + second)
    terms = betaln(*prior) - betaln(first, second)
    terms = terms + (first - prior[0]) * (digamma(first) - total) + (second - prior[1]) * (digamma(second) - total)
    return float(terms.sum())
