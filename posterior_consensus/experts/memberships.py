"""How likely each item belongs to each cluster of one view: softmax of its features, or free without them.

Both kinds give the terms of the evidence lower bound that hold the memberships of one view, and their gradient. Nothing
but these terms ties a view to the rest, so that each view is climbed alone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]

_NARROW = 1e-3  # standard deviation of a coefficient at the start
_LOG_SD = (-15.0, 0.0)  # the bound falls in a standard deviation beyond that of the prior, 1


class Memberships(Protocol):
    """Parameters of one view as one vector, the bound's terms in them, and the memberships that they stand for."""

    limits: tuple[Floats, Floats]  # least and largest values of the parameters

    def start(self, rng: np.random.Generator) -> Floats:
        """Parameters to begin with."""
        ...

    def soft(self, parameters: Floats) -> Floats:
        """Probabilities (n, K) of the clusters."""
        ...

    def value(self, parameters: Floats, links: csr_array) -> tuple[float, Floats]:
        """Terms of the bound, and their gradient.

        `links` (n, n) is symmetric: the weight of the statements of all experts that two items belong together.
        """
        ...


def log_sum_exp(logits: Floats) -> Floats:
    """Logarithm of the sum of exponentials along the last axis, shape (n, 1)."""
    top = logits.max(axis=-1, keepdims=True)
    total: Floats = top + np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return total


def softmax(logits: Floats) -> Floats:
    """Exponentials of the rows, scaled to sum to 1."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    scaled: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return scaled


def _limits(n_free: int, n_log_sd: int) -> tuple[Floats, Floats]:
    """Limits of free parameters and of the logarithms of standard deviations after them."""
    low, high = (
        np.concatenate([np.full(n_free, free), np.full(n_log_sd, log_sd)])
        for free, log_sd in zip((-np.inf, np.inf), _LOG_SD, strict=True)
    )
    return low, high


def _normal_terms(means: Floats, log_sd: Floats) -> tuple[float, Floats, Floats]:
    """Minus the divergence of independent normals from standard ones, and its gradient."""
    variances = np.exp(2 * log_sd)
    value = float((log_sd + 0.5).sum() - 0.5 * (variances.sum() + (means * means).sum()))
    return value, -means, 1 - variances


def _pull(soft: Floats, links: csr_array) -> tuple[float, Floats]:
    """Weight of the statements that the memberships (n, K) keep, and its gradient in the logits."""
    drawn = links @ soft
    kept = soft * drawn
    by_item = kept.sum(axis=1, keepdims=True)
    return 0.5 * float(by_item.sum()), kept - soft * by_item


class FeatureMemberships:
    """Softmax of a linear function of the features, with normal coefficients.

    Parameters
    ----------
    features : float array of shape (n, D)
        Standardised.
    n_clusters : int
    """

    def __init__(self, features: Floats, n_clusters: int) -> None:
        self._design = np.column_stack([features, np.ones(len(features))])
        self._squares = self._design**2
        self._shape = (2, self._design.shape[1], n_clusters)
        number = self._design.shape[1] * n_clusters
        self.limits = _limits(number, number)

    def start(self, rng: np.random.Generator) -> Floats:
        """Means from a normal distribution, narrow standard deviations."""
        parameters = np.full(self._shape, np.log(_NARROW))
        parameters[0] = rng.normal(0, max(self._shape[1] - 1, 1) ** -0.5, self._shape[1:])
        return parameters.ravel()

    def coefficients(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Means and standard deviations (D + 1, K), the intercepts last."""
        means, log_sd = parameters.reshape(self._shape)
        return means, np.exp(log_sd)

    def soft(self, parameters: Floats) -> Floats:
        """Memberships at the means of the coefficients."""
        return softmax(self._design @ parameters.reshape(self._shape)[0])

    def value(self, parameters: Floats, links: csr_array) -> tuple[float, Floats]:
        """Terms of the bound, and their gradient."""
        means, log_sd = parameters.reshape(self._shape)
        variances = np.exp(2 * log_sd)
        logits = self._design @ means
        raised = logits + 0.5 * (self._squares @ variances)
        soft, spread = softmax(logits), softmax(raised)
        kept, pull = _pull(soft, links)
        prior, in_means, in_log_sd = _normal_terms(means, log_sd)
        value = kept + prior + float((log_sum_exp(logits) - log_sum_exp(raised)).sum())
        gradient = np.empty(self._shape)
        gradient[0] = self._design.T @ (pull + soft - spread) + in_means
        gradient[1] = in_log_sd - variances * (self._squares.T @ spread)
        return value, gradient.ravel()


class FreeMemberships:
    """Memberships without features: a vector of logits for each item, with log odds of the clusters in common.

    Parameters
    ----------
    n_items, n_clusters : int
    """

    def __init__(self, n_items: int, n_clusters: int) -> None:
        self._shape = (n_items, n_clusters)
        self.limits = _limits((n_items + 1) * n_clusters, n_clusters)

    def start(self, rng: np.random.Generator) -> Floats:
        """Logits from a normal distribution."""
        odds = np.concatenate([np.zeros(self._shape[1]), np.full(self._shape[1], np.log(_NARROW))])
        return np.concatenate([rng.normal(size=self._shape).ravel(), odds])

    def soft(self, parameters: Floats) -> Floats:
        """Memberships."""
        return softmax(self._parts(parameters)[0])

    def _parts(self, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        n, k = self._shape
        return parameters[: n * k].reshape(n, k), parameters[n * k : n * k + k], parameters[n * k + k :]

    def value(self, parameters: Floats, links: csr_array) -> tuple[float, Floats]:
        """Terms of the bound, and their gradient."""
        logits, means, log_sd = self._parts(parameters)
        variances = np.exp(2 * log_sd)
        raised = means + 0.5 * variances
        soft, spread = softmax(logits), softmax(raised)
        kept, pull = _pull(soft, links)
        prior, in_means, in_log_sd = _normal_terms(means, log_sd)
        surplus = means - logits  # the expected log odds of the model, less those of the memberships
        by_item = (soft * surplus).sum(axis=1, keepdims=True)
        total = len(logits) * float(log_sum_exp(raised)[0])
        value = kept + prior + float((by_item + log_sum_exp(logits)).sum()) - total
        gradient = [
            (pull + soft * (surplus - by_item)).ravel(),
            soft.sum(axis=0) - len(logits) * spread + in_means,
            in_log_sd - len(logits) * variances * spread,
        ]
        return value, np.concatenate(gradient)
