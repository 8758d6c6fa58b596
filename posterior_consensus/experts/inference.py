"""Variational inference of the views from one start: closed-form updates, and ascents of each view's memberships.

Membership probabilities are a softmax of the items' features, or free parameters. Given the experts, the evidence
lower bound is a sum over views, so each view is optimized separately.
"""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize
from scipy.sparse import csr_array
from scipy.special import betaln, digamma, gammaln, logsumexp, softmax

from posterior_consensus.kernels import pair_moves
from posterior_consensus.kernels.pair_moves import settle_memberships
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Floats, Positions
from posterior_consensus.search.local_search import descend_pairs

_NARROW = 1e-3  # standard deviation of a coefficient at the start
_LOG_SD = (-15.0, 0.0)  # limits; the bound falls beyond the prior's standard deviation of 1
_COSTS = pair_moves.Costs(-1.0, 0.0)  # minus the weight of the satisfied constraints
_STEPS = 15  # of L-BFGS-B in an ascent
_TURNS, _PASSES, _STILL = 20, 20, 1e-5  # of free memberships: turns, passes over the items, and change at the end
_RELIABILITY = 10.0, 1.0  # prior of sensitivity and specificity, each a beta distribution
_CONCENTRATION = 1.0  # of the views
_ROUNDS = 200
_SETTLED = 1e-6  # relative rise of the bound at which a run ends
_MOVED = 0.01  # change of an expert's probability of a view, after which memberships are also proposed anew
_INNER = 50  # most rounds of the closed forms between two ascents


def _normal_terms(means: Floats, log_sd: Floats) -> tuple[float, Floats, Floats]:
    """Minus the divergence of independent normals from standard ones, and its gradient."""
    variances = np.exp(2 * log_sd)
    value = float((log_sd + 0.5).sum() - 0.5 * (variances.sum() + (means * means).sum()))
    return value, -means, 1 - variances


def _pull(soft: Floats, links: csr_array) -> tuple[float, Floats]:
    """Expected weight of the constraints satisfied by memberships (n, K), and its gradient in the logits."""
    kept = soft * (links @ soft)
    by_item = kept.sum(axis=1, keepdims=True)
    return 0.5 * float(by_item.sum()), kept - soft * by_item


class FeatureMemberships:
    """Softmax of a linear function of the features, with normal coefficients.

    Parameters
    ----------
    features : float array of shape (n, D)
        Standardized features.
    n_clusters : int
        Number of clusters.
    """

    def __init__(self, features: Floats, n_clusters: int) -> None:
        self._design = np.column_stack([features, np.ones(len(features))])
        self._squares = self._design**2
        self._shape = (2, self._design.shape[1], n_clusters)
        number = self._design.shape[1] * n_clusters
        free, narrow = np.full(number, np.inf), np.full(number, 1.0)
        self._limits = Bounds(np.concatenate([-free, _LOG_SD[0] * narrow]), np.concatenate([free, _LOG_SD[1] * narrow]))

    def start(self, rng: np.random.Generator) -> Floats:
        """Initial parameters: means from a normal distribution, and small standard deviations."""
        parameters = np.full(self._shape, np.log(_NARROW))
        parameters[0] = rng.normal(0, max(self._shape[1] - 1, 1) ** -0.5, self._shape[1:])
        return parameters.ravel()

    def coefficients(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Means and standard deviations (D + 1, K), the intercepts last."""
        means, log_sd = parameters.reshape(self._shape)
        return means, np.exp(log_sd)

    def soft(self, parameters: Floats) -> Floats:
        """Memberships at the means of the coefficients."""
        return softmax(self._design @ parameters.reshape(self._shape)[0], axis=-1)

    def climbed(self, parameters: Floats, links: csr_array) -> Floats:
        """Parameters after a few steps of L-BFGS-B."""

        def cost(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = self.value(parameters, links)
            return -value, -gradient

        options = {"maxiter": _STEPS}
        solution = minimize(cost, parameters, jac=True, method="L-BFGS-B", bounds=self._limits, options=options)
        climbed: Floats = solution.x
        return climbed

    def proposed(self, links: csr_array, rng: np.random.Generator) -> Floats | None:
        """None: with few parameters, ascents suffice."""
        return None

    def own_terms(self, parameters: Floats) -> float:
        """Terms of the bound from the coefficients, and from the memberships given the coefficients."""
        return self.value(parameters, csr_array((len(self._design), len(self._design))))[0]

    def value(self, parameters: Floats, links: csr_array) -> tuple[float, Floats]:
        """Terms of the bound that depend on the parameters, and their gradient."""
        means, log_sd = parameters.reshape(self._shape)
        variances = np.exp(2 * log_sd)
        logits = self._design @ means
        raised = logits + 0.5 * (self._squares @ variances)
        soft, spread = softmax(logits, axis=-1), softmax(raised, axis=-1)
        kept, pull = _pull(soft, links)
        prior, in_means, in_log_sd = _normal_terms(means, log_sd)
        value = kept + prior + float((logsumexp(logits, axis=-1) - logsumexp(raised, axis=-1)).sum())
        gradient = np.empty(self._shape)
        gradient[0] = self._design.T @ (pull + soft - spread) + in_means
        gradient[1] = in_log_sd - variances * (self._squares.T @ spread)
        return value, gradient.ravel()


class FreeMemberships:
    """Memberships without features: probabilities of each item, with common shares of the clusters.

    The shares have a symmetric Dirichlet prior of total 1, under which superfluous clusters stay empty. Parameters are
    the probabilities (n, K) and, in the last row, the Dirichlet posterior of the shares.

    Parameters
    ----------
    n_items, n_clusters : int
        Numbers of items and clusters.
    """

    def __init__(self, n_items: int, n_clusters: int) -> None:
        self._shape = (n_items, n_clusters)
        self._prior = np.full(n_clusters, 1 / n_clusters)
        self._stop = np.zeros(1, np.uint8)

    def start(self, rng: np.random.Generator) -> Floats:
        """Initial parameters, with nearly equal probabilities."""
        return self._with_shares(softmax(0.1 * rng.normal(size=self._shape), axis=-1))

    def soft(self, parameters: Floats) -> Floats:
        """Memberships."""
        return parameters[:-1]

    def climbed(self, parameters: Floats, links: csr_array) -> Floats:
        """Parameters after closed-form updates of the probabilities and the shares, in turn."""
        soft, dirichlet = parameters[:-1].copy(), parameters[-1]
        for _ in range(_TURNS):
            odds = digamma(dirichlet) - digamma(dirichlet.sum())
            settle_memberships(links.data, links.indices, links.indptr, odds, soft, _PASSES, _STILL)
            before, dirichlet = dirichlet, self._prior + soft.sum(axis=0)
            if np.abs(dirichlet - before).max() < 1e-3:
                break
        return self._with_shares(soft)

    def proposed(self, links: csr_array, rng: np.random.Generator) -> Floats | None:
        """Parameters at the partition that greedy search finds for the largest weight of satisfied constraints."""
        n, k = self._shape
        if not memory.fits(8 * n * n):
            return None
        labels = np.full(n, -1, np.int32)
        descend_pairs(links.toarray(), _COSTS, labels, rng.permutation(n), (1, k), self._stop)
        return self._with_shares(np.eye(k)[labels])

    def own_terms(self, parameters: Floats) -> float:
        """Entropy of the memberships, plus expected log prior of memberships and shares."""
        soft, dirichlet = parameters[:-1], parameters[-1]
        odds = digamma(dirichlet) - digamma(dirichlet.sum())
        entropy = -float((soft * np.log(np.maximum(soft, np.finfo(float).tiny))).sum())
        surplus = gammaln(dirichlet).sum() - gammaln(dirichlet.sum()) - gammaln(self._prior).sum()
        return entropy + float(soft.sum(axis=0) @ odds + surplus + (self._prior - dirichlet) @ odds)

    def _with_shares(self, soft: Floats) -> Floats:
        return np.vstack([soft, self._prior + soft.sum(axis=0)])


Memberships = FeatureMemberships | FreeMemberships
"""Models of the memberships in one view, whose parameters are arrays."""


class Statements(NamedTuple):
    """Constraints of M experts on P distinct pairs, with their counts."""

    pairs: Positions  # (P, 2): positions of the items of each pair, in ascending order
    must: csr_array  # (M, P): number of must-links and cannot-links of each expert on each pair
    cannot: csr_array
    n_items: int


@dataclass
class Fit:
    """Variational parameters after a run."""

    sensitivity: Floats  # (M, 2): parameters of beta distributions
    specificity: Floats
    view: Floats  # (M, G): probabilities of the views of each expert
    sticks: Floats  # (G, 2): parameters of the beta distributions of stick breaking
    parameters: list[Floats]  # parameters of the memberships of each view
    bound: float = -np.inf  # evidence lower bound
    trace: list[float] = field(default_factory=list)  # the bound after each round


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
            _sort_views(fit)
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
        likelihood: Floats | np.float64 = (fit.view * (in_must * must + in_cannot * cannot)).sum()
        likelihood += self._n_must @ wrong + self._n_cannot @ right
        divergence = beta_divergence(fit.sensitivity, _RELIABILITY) + beta_divergence(fit.specificity, _RELIABILITY)
        divergence += beta_divergence(fit.sticks, (1.0, _CONCENTRATION))
        log_view = np.log(np.maximum(fit.view, np.finfo(float).tiny))
        chosen = (fit.view * (expected_log_shares(fit.sticks) - log_view)).sum()
        within = sum(self._memberships.own_terms(parameters) for parameters in fit.parameters)
        return float(likelihood - divergence + chosen + within)


def _sort_views(fit: Fit) -> None:
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
