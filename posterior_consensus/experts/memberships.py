"""Membership probabilities of the items in one view: a softmax of their features, or free parameters.

Given the experts, the evidence lower bound is a sum over views, so each view is optimized separately.
"""

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, logsumexp, softmax

from posterior_consensus.ensemble.items import Floats
from posterior_consensus.kernels import pair_moves
from posterior_consensus.kernels.memberships import settle_memberships
from posterior_consensus.runtime import memory
from posterior_consensus.search.descent import settle_pairs

_NARROW = 1e-3  # standard deviation of a coefficient at the start
_LOG_SD = (-15.0, 0.0)  # limits; the bound falls beyond the prior's standard deviation of 1
_COSTS = pair_moves.Costs(-1.0, 0.0)  # minus the weight of the satisfied constraints
_STEPS = 15  # of L-BFGS-B in an ascent
_TURNS, _PASSES, _STILL = 20, 20, 1e-5  # of free memberships: turns, passes over the items, and change at the end


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
        settle_pairs(links.toarray(), _COSTS, labels, rng.permutation(n), (1, k), self._stop)
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
