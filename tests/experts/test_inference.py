"""The evidence lower bound: gradients and a slow definition."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import beta, norm

import posterior_consensus as pc
from posterior_consensus.experts.inference import FeatureMemberships, FreeMemberships, Inference

STOP = np.zeros(1, np.uint8)


def some_statements(rng, n_items=7, n_experts=3, number=25):
    who, i = rng.integers(n_experts, size=number), rng.integers(n_items, size=number)
    j = (i + rng.integers(1, n_items, size=number)) % n_items
    kind = rng.choice(["must", "cannot"], size=number)
    return pc.experts.as_constraints({"expert": who, "i": i, "j": j, "kind": kind}, n_items)


def test_gradients_are_those_of_finite_differences(rng):
    memberships = FeatureMemberships(rng.normal(size=(9, 3)), 3)
    half = rng.normal(size=(9, 9)) * (rng.random((9, 9)) < 0.4)
    links = csr_array(np.triu(half, 1) + np.triu(half, 1).T)
    at = np.concatenate([rng.normal(size=12), rng.normal(-1, 0.5, size=12)])
    found = memberships.value(at, links)[1]
    steps = 1e-5 * np.eye(at.size)
    wanted = [(memberships.value(at + h, links)[0] - memberships.value(at - h, links)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7)


def beta_divergence(a, b, prior):
    """Divergence from a beta prior, by integration."""

    def integrand(x):
        return beta.pdf(x, a, b) * (beta.logpdf(x, a, b) - beta.logpdf(x, *prior))

    return quad(integrand, 0, 1, limit=200)[0]


def slow_bound(said, fit, soft, within):
    """The bound as a sum over statements, experts and sticks, with loops and integrals."""
    total = within
    expected = [digamma(p) - digamma(p.sum(axis=1, keepdims=True)) for p in (fit.sensitivity, fit.specificity)]
    for m, i, j, must in zip(said.expert, said.i, said.j, said.must, strict=True):
        together = sum(fit.view[m, g] * soft[g][i] @ soft[g][j] for g in range(fit.view.shape[1]))
        (hit, miss), (right, wrong) = expected[0][m], expected[1][m]
        total += together * (hit if must else miss) + (1 - together) * (wrong if must else right)
    for p in (*fit.sensitivity, *fit.specificity):
        total -= beta_divergence(*p, (10, 1))
    for p in fit.sticks:
        total -= beta_divergence(*p, (1, 1))
    logs = digamma(fit.sticks) - digamma(fit.sticks.sum(axis=1, keepdims=True))
    for m in range(fit.view.shape[0]):
        for g in range(fit.view.shape[1]):
            share = logs[g, 0] + sum(logs[before, 1] for before in range(g))
            total += fit.view[m, g] * (share - np.log(fit.view[m, g])) if fit.view[m, g] > 0 else 0.0
    return total


def terms_of_features(values, memberships, parameters):
    """Terms of one view's coefficients: Jensen's bound, and divergences by integration."""
    means, sds = memberships.coefficients(parameters)
    design = np.column_stack([values, np.ones(len(values))])
    soft = memberships.soft(parameters)
    logits, raised = design @ means, design @ means + design**2 @ sds**2 / 2
    total = (soft * logits).sum() - logsumexp(raised, axis=1).sum() - (soft * np.log(soft)).sum()
    for mean, sd in zip(means.ravel(), sds.ravel(), strict=True):
        points = np.linspace(mean - 10 * sd, mean + 10 * sd, 4001)
        density = norm.pdf(points, mean, sd)
        total -= np.trapezoid(density * (norm.logpdf(points, mean, sd) - norm.logpdf(points)), points)
    return total


def terms_of_shares(soft, dirichlet, prior):
    """Terms of one view's free memberships and shares."""
    odds = digamma(dirichlet) - digamma(dirichlet.sum())
    total = (soft @ odds).sum() - (soft * np.log(np.maximum(soft, 1e-300))).sum()
    log_own = gammaln(dirichlet.sum()) - gammaln(dirichlet).sum() + (dirichlet - 1) @ odds
    log_prior = gammaln(prior.sum()) - gammaln(prior).sum() + (prior - 1) @ odds
    return total + log_prior - log_own


@pytest.mark.parametrize("with_features", [True, False])
def test_the_bound_is_its_definition(rng, with_features):
    said, values = some_statements(rng), rng.normal(size=(7, 2))
    memberships = FeatureMemberships(values, 3) if with_features else FreeMemberships(7, 3)
    fit = Inference(said.statements, memberships, 2).run(rng, STOP, not with_features)
    if with_features:
        within = sum(terms_of_features(values, memberships, parameters) for parameters in fit.parameters)
    else:
        within = sum(terms_of_shares(p[:-1], p[-1], np.full(3, 1 / 3)) for p in fit.parameters)
    soft = [memberships.soft(parameters) for parameters in fit.parameters]
    assert fit.bound == pytest.approx(slow_bound(said, fit, soft, within), abs=1e-5)
