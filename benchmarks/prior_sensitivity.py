"""Posteriors reweighted to other priors, beside exact expectations and beside runs under these priors.

First all 877 partitions of seven observations in normal clusters: draws of the posterior under each prior, weighted to
each other one, against the exact expected number of clusters, for 200 samples of 4,000 draws. Then the galaxies: runs
of the Gibbs sampler of benchmarks._posteriors (algorithm 3 of Neal 2000) at four concentrations, each weighted to the
others, against the runs themselves. Then draws of few numbers of clusters, whose ratios depend on all sizes and so are
nearly equal rather than equal. Then the rule of reliability, on posteriors with known answers: those it was chosen on,
and others. Last the seconds that the prior of the number of clusters takes."""

import itertools

import numpy as np
from scipy import stats

import posterior_consensus as pc
from benchmarks._known_numbers import Flat, Numbers, Series, kept, of_crp, of_mixture, series, taken
from benchmarks._posteriors import dirichlet_process_draws
from benchmarks._runner import used
from posterior_consensus.ensemble.importance import importance
from posterior_consensus.ensemble.partitions import enumerate_partitions
from posterior_consensus.ensemble.samples import ChainSamples, Samples
from posterior_consensus.priors.record import Sizes

OBSERVATIONS, SPREAD = np.array([-2.1, -1.7, -0.2, 0.1, 0.4, 1.9, 2.6]), 2.0
N_DRAWS, REPETITIONS = 4_000, 200
CONCENTRATIONS, BURN_IN, SWEEPS = (0.5, 1.0, 2.0, 4.0), 500, 8_000
PRIORS = {
    "crp(1)": pc.priors.crp(1.0),
    "crp(3)": pc.priors.crp(3.0),
    "crp(gamma)": pc.priors.crp((2.0, 4.0)),
    "pitman_yor(1, 0.3)": pc.priors.pitman_yor(1.0, 0.3),
    "dirichlet(1, M = 5)": pc.priors.dirichlet_multinomial(1.0, 5),
    "mfm(1, geometric)": pc.priors.mixture_of_finite_mixtures(1.0, stats.geom(0.3)),
}
FACTORS, FEW, MANY = (0.5, 0.9, 1.1, 1.5, 2.0, 4.0), 1_000, 100  # draws of a sample, samples in the long run
TIMED = {
    "crp(1)": pc.priors.crp(1.0),
    "pitman_yor(1, 0.5)": pc.priors.pitman_yor(1.0, 0.5),
    "crp(half-Cauchy)": pc.priors.crp(stats.halfcauchy()),
}
FEW_WIDE = (0.1, 0.5, 0.8, 1.25, 2.0, 5.0, 10.0)
LENGTH, CHAINS, SETS = 1_000, 4, 5  # draws of a chain, chains, sets of draws of a posterior
WIDE = (0.002, 0.02, 0.1, 0.2, 0.5, 0.8, 1.25, 2.0, 5.0, 10.0, 50.0, 500.0)  # factors of a concentration
RULES = ("independent", "draws kept", "steps of one")  # chains: the others have an effective size of a tenth
RARE_SETS, RARE_DRAWS = 50, 10_000
OPTIONS = {"--seed": {"type": int, "default": 1, "help": "of all samples and runs"}}


def log_likelihoods(partitions):
    """Log density of the observations given each partition, normal clusters of unit variance, means integrated out."""
    covariances = np.eye(7) + SPREAD**2 * (partitions[:, :, np.newaxis] == partitions[:, np.newaxis])
    solved = np.linalg.solve(covariances, OBSERVATIONS[:, np.newaxis])[..., 0]
    return -0.5 * (solved @ OBSERVATIONS + np.linalg.slogdet(covariances)[1])


def weighted_means(rng, n_repetitions, priors=PRIORS):
    """For each pair of priors, k-hats (R,), whether weights are reliable, errors and MCSE of the mean number."""
    partitions = np.vstack(list(enumerate_partitions(7)))
    clusters, log_likelihood = partitions.max(axis=1) + 1.0, log_likelihoods(partitions)
    log_priors = {name: prior.log_prob(partitions).values for name, prior in priors.items()}
    for name, other in itertools.permutations(priors, 2):
        if np.any((log_priors[name] == -np.inf) & (log_priors[other] > -np.inf)):
            continue  # the first prior excludes what the other allows
        exact = {one: np.exp(log_priors[one] + log_likelihood) for one in (name, other)}
        wanted = exact[other] @ clusters / exact[other].sum()
        found = []
        for _ in range(n_repetitions):
            rows = rng.choice(len(partitions), N_DRAWS, p=exact[name] / exact[name].sum())
            ratio = log_priors[other][rows] - log_priors[name][rows]
            mean, mcse, weighted = reweighted(Samples.of_one_chain(N_DRAWS), ratio, clusters[rows], 7)
            found.append((weighted.pareto_k, weighted.is_reliable, mean - wanted, mcse))
        yield name, other, *np.array(found).T


def reweighted(samples, log_ratio, numbers, n_items):
    """Expected number of clusters as in the table of prior_sensitivity, its error, and the weights."""
    weighted = importance(samples, log_ratio, numbers.astype(np.int64), n_items)
    numbers = numbers.astype(float)
    mean = weighted.samples.mean(numbers)
    return mean, weighted.widened(weighted.samples.mcse(numbers), mean, weighted.beyond.numbers), weighted


def galaxies():
    """Velocities in units of 750 km/s, about the standard deviation of a cluster."""
    velocities = np.loadtxt("examples/data/galaxies.csv", skiprows=1) / 750
    return (velocities - velocities.mean())[:, np.newaxis]


def tables(smallest, seed):
    priors = dict(list(PRIORS.items())[:2]) if smallest else PRIORS
    rng = np.random.default_rng(seed)
    yield "", (_exact(*pair) for pair in weighted_means(rng, 3 if smallest else REPETITIONS, priors))
    yield "", _runs(seed, *((10, 60) if smallest else (BURN_IN, SWEEPS)))
    yield "", _nearly_equal(rng, *((3, 1) if smallest else (60, MANY)))
    for which, cases in (("posteriors it was chosen on", _chosen_on), ("others", _held_out)):
        yield f"The rule of reliability: {which}", _rules(seed, cases(smallest), 1 if smallest else SETS)
    yield "A partition of few draws has much of the weight", _rare_partitions(seed, 1 if smallest else RARE_SETS)
    yield "", (_seconds(name, (100,) if smallest else (10_000, 100_000)) for name in TIMED)


def _exact(name, other, k, can, error, mcse):
    return {
        "draws of": name,
        "weighted to": other,
        "median k-hat": float(np.median(k)),
        "unreliable": f"{np.mean(can == 0):.1%}",
        "within 3 errors": f"{np.mean(np.abs(error) <= 3 * mcse):.1%}",
        "mean error / MCSE": float(error.mean() / mcse.mean()),
    }


def _runs(seed, burn_in, sweeps):
    runs = {}
    for a in CONCENTRATIONS:
        rng = np.random.default_rng([seed, int(10 * a)])
        runs[a] = pc.as_partition_draws(dirichlet_process_draws(galaxies(), 6.0, a, burn_in + sweeps, rng)[burn_in:])
    best = pc.consensus_partition(runs[1.0], random_seed=1, progressbar=False)
    for a, b in itertools.permutations(CONCENTRATIONS, 2):
        ratio = pc.priors.crp(b).log_prob(runs[a]) - pc.priors.crp(a).log_prob(runs[a])
        found = importance(runs[a].samples, ratio.values, runs[a].n_clusters, runs[a].n_items)
        weighted = pc.reweight(runs[a], ratio, max_pareto_k=np.inf)
        row = {"run at": a, "weighted to": b, "k-hat": found.pareto_k}
        row["effective draws"] = f"{weighted.samples.effective_draws:.0f}"
        for what, one, other in zip(
            ("clusters", "expected VI"), _means(weighted, best), _means(runs[b], best), strict=True
        ):
            row[what] = f"{one[0]:.3f} ± {one[1]:.3f}"
            row[f"{what} of a run"] = f"{other[0]:.3f} ± {other[1]:.3f}"
            row[f"errors apart, {what}"] = float(abs(one[0] - other[0]) / np.hypot(one[1], other[1]))
        yield row


def _means(draws, best):
    """Mean number of clusters and expected VI, with their errors."""
    loss = pc.expected_loss(draws, best, loss="vi")
    numbers = draws.n_clusters.astype(float)
    yield draws.samples.mean(numbers), draws.samples.mcse(numbers)
    yield float(loss["expected_loss"]), float(loss["mcse"])


def _blurred(rng, n_draws):
    """Numbers (N,) and sizes of clusters: five of 178 items, with noise and often a small sixth to eighth one."""
    labels = np.tile(np.repeat(np.arange(5), [61, 51, 39, 25, 2]), (n_draws, 1))
    labels = np.where(rng.random(labels.shape) < 0.06, rng.integers(4, size=labels.shape), labels)
    more = rng.choice(4, n_draws, p=[0.74, 0.23, 0.027, 0.003])
    for k in range(1, 4):
        for row in np.flatnonzero(more >= k):
            labels[row, rng.choice(178, 1 + rng.geometric(0.4), replace=False)] = 4 + k
    counts = np.bincount((labels + 8 * np.arange(n_draws)[:, np.newaxis]).ravel(), minlength=8 * n_draws)
    numbers = (counts.reshape(-1, 8) > 0).sum(axis=1)
    return numbers, Sizes(counts[counts > 0], np.append(0, np.cumsum(numbers)), 178)


def _nearly_equal(rng, n_samples, n_long):
    prior = pc.priors.dirichlet_multinomial(0.1, 8)
    for factor in FACTORS:
        other, sums, rows = pc.priors.dirichlet_multinomial(0.1 * factor, 8), np.zeros(2), []
        for _ in range(n_long):
            numbers, sizes = _blurred(rng, N_DRAWS)
            weights = np.exp(other.of_sizes(sizes) - prior.of_sizes(sizes))
            sums += weights.sum(), weights @ numbers
        for _ in range(n_samples):
            numbers, sizes = _blurred(rng, FEW)
            ratio = other.of_sizes(sizes) - prior.of_sizes(sizes)
            mean, mcse, found = reweighted(Samples.of_one_chain(FEW), ratio, numbers, 8)
            share, error = found.samples.effective_draws / FEW, (mean - sums[1] / sums[0]) / mcse
            rows.append((found.pareto_k, found.rare, found.unseen, share, found.is_reliable, error))
        k, rare, unseen, share, reliable, errors = np.array(rows).T
        reported = errors[reliable == 1]
        yield {
            "dirichlet_multinomial(0.1, 8) to": f"{0.1 * factor:.2g}",
            "k-hat, median": float(np.median(k)),
            "rare": float(np.median(rare)),
            "unseen": float(np.median(unseen)),
            "effective draws": f"{np.median(share):.0%}",
            "reliable": f"{reliable.mean():.0%}",
            "errors in MCSE if reliable, root mean square": float(np.sqrt(np.mean(reported**2)))
            if reported.size
            else "",
            "beyond 3": f"{np.mean(np.abs(reported) > 3):.0%}" if reported.size else "",
        }


def _concentrations(make, own, factors=WIDE):
    """Priors by factor of the concentration; those of half and twice are mild."""
    return {f"{'mild ' if f in (0.5, 2.0) else ''}x{f:g}": make(own * f) for f in factors}


def _sums_of_coins(seed, n_items=40):
    """Number of clusters with independent chances to be there."""
    chances = np.ones(1)
    for p in np.random.default_rng(seed).beta(0.3, 1.5, 25):
        chances = np.convolve(chances, [1 - p, p])
    return Numbers(n_items, chances, WIDE)


def _rare(share, number, factors):
    """Five to seven clusters, but for a share of the draws."""
    chances = np.zeros(20)
    chances[4:7] = np.array([0.3, 0.5, 0.2]) * (1 - share)
    chances[number - 1] += share
    return Numbers(30, chances, factors)


def _by_concentration(observations, own):
    """A series under a Chinese restaurant process."""
    one = Series(pc.priors.crp(own), {}, observations)
    return Numbers(one.n_items, one.chances, WIDE)


def _chosen_on(smallest):
    flat = {10: (0.01, 0.1, 1, 3), 30: (0.01, 0.1, 1, 3, 10), 120: (0.01, 0.5, 2, 8)}
    yield "CRP, flat", [of_crp(float(a), n, WIDE) for n, several in flat.items() for a in several]
    if smallest:
        return
    observed = [series(seed, n, d) for n, seed, d in ((20, 1, 2.0), (40, 2, 1.0), (40, 3, 3.0), (80, 4, 1.5))]
    yield "CRP, series", [_by_concentration(y, a) for y in observed for a in (0.3, 1.0, 4.0)]
    yield "independent clusters", [_sums_of_coins(seed) for seed in range(4)]
    yield "a rare number", [_rare(s, k, WIDE) for s, k in ((0.005, 11), (0.02, 10), (0.005, 4), (0.02, 4))]
    yield "other priors, flat", list(_flat(40, 0.3, 1.0, 8, 0.5))
    yield (
        "other priors, series",
        [one for y in (observed[1], observed[2][:30]) for one in _of_series(y, 0.3, 1.0, 15, 0.5)],
    )


def _held_out(smallest):
    flat = {7: (0.02, 0.3, 2), 20: (0.01, 0.2, 5), 60: (0.05, 0.7, 3), 200: (0.01, 0.3, 1)}
    yield "CRP, flat", [of_crp(float(a), n, WIDE) for n, several in flat.items() for a in several]
    if smallest:
        return
    observed = [series(seed, n, d) for n, seed, d in ((15, 11, 1.5), (60, 12, 2.5), (60, 13, 1.0), (150, 14, 2.0))]
    yield "CRP, series", [_by_concentration(y, a) for y in observed for a in (0.5, 2.0)]
    yield (
        "CRP, mixtures of normals",
        [of_mixture(seed, 40, a, WIDE, 500) for seed, a in ((21, 0.5), (22, 1.0), (23, 3.0))],
    )
    yield "a rare number", [_rare(s, k, WIDE) for s, k in ((0.004, 12), (0.01, 9), (0.004, 3), (0.01, 1))]
    yield "other priors, flat", [one for n in (20, 100, 200) for one in _flat(n, 0.5, 0.5, 5, 1.0)]
    yield "other priors, series", [one for y in observed[:3] for one in _of_series(y, 0.5, 0.5, 20, 0.2)]
    yield "sticks, flat", [_sticks(n, a) for n in (20, 100) for a in (0.5, 2.0)]


def _others(discount, own, components, each):
    """Each prior with alternatives of its family and of other families."""
    priors = pc.priors
    more = {
        "crp": priors.crp(own),
        "py": priors.pitman_yor(own, discount),
        "py more": priors.pitman_yor(own, discount + 0.15),
        "py less": priors.pitman_yor(own, discount - 0.15),
        "crp gamma": priors.crp((2.0, 2.0)),
    }
    yield (
        priors.pitman_yor(own, discount),
        more | _concentrations(lambda a: priors.pitman_yor(a, discount), own, FEW_WIDE),
    )
    finite = _concentrations(lambda g: priors.dirichlet_multinomial(g, components), each, FEW_WIDE)
    yield priors.dirichlet_multinomial(each, components), finite
    yield priors.crp(own), more | {"finite": priors.dirichlet_multinomial(each, components)}
    mixed = _concentrations(lambda g: priors.mixture_of_finite_mixtures(g, stats.geom(0.3)), each, FEW_WIDE)
    yield priors.mixture_of_finite_mixtures(each, stats.geom(0.3)), mixed | {"crp": priors.crp(own)}


def _flat(n, *parameters):
    for prior, others in _others(*parameters):
        yield Flat(prior, others, n)


def _of_series(observations, *parameters):
    for prior, others in list(_others(*parameters))[:3]:
        kept_others = {name: other for name, other in others.items() if name != "crp gamma"}  # a sum over nodes
        yield Series(prior, kept_others, observations)


def _sticks(n, own):
    return Flat(pc.priors.stick_breaking(own, 12), _concentrations(lambda a: pc.priors.stick_breaking(a, 12), own), n)


def _rules(seed, families, n_sets):
    for place, (family, posteriors) in enumerate(families):
        for kind, chain in enumerate(RULES):
            rng = np.random.default_rng([seed, place, kind])
            found = np.array([row for one in posteriors for row in _judged(rng, one, chain, n_sets)])
            if not found.size:
                continue
            mild, reliable, off = found.T
            far = off[reliable == 1] > 3
            yield {
                "posteriors": f"{family} ({len(posteriors)})",
                "chains": chain,
                "sets and alternatives": len(found),
                "reported": f"{reliable.mean():.1%}",
                "beyond 3 errors": f"{far.mean():.2%}",
                "all, beyond 3 errors": f"{np.mean(off > 3):.1%}",
                "half and twice: reported": f"{reliable[mild == 1].mean():.1%}",
            }


def _judged(rng, posterior, chain, n_sets):
    """For each set of draws and each alternative: whether it is mild, whether it is reported, and errors off."""
    if chain == "steps of one" and not (isinstance(posterior, Numbers) and _is_connected(posterior.chances)):
        return
    number = np.arange(CHAINS * LENGTH)
    samples = ChainSamples(number // LENGTH, number % LENGTH, np.full(number.size, 1.0 / number.size), named=False)
    expected = posterior.expected
    for _ in range(n_sets):
        if chain == "steps of one":
            numbers, ratios = posterior.walk(rng, CHAINS, LENGTH)
        else:
            drawn = posterior.draw(rng, number.size)
            numbers, ratios = taken(drawn, number if chain == "independent" else kept(rng, CHAINS, LENGTH))
        for name, ratio in ratios.items():
            mean, mcse, weighted = reweighted(samples, ratio, numbers, posterior.n_items)
            off = abs(mean - expected[name]) - 1e-9
            yield posterior.mild(name), weighted.is_reliable, off / mcse if mcse > 0 else np.inf * (off > 0)


def _rare_partitions(seed, n_sets):
    """The probability of one partition, which has as many clusters as others: its weight is not seen in that number."""
    n_draws, number = RARE_DRAWS, np.arange(RARE_DRAWS)
    samples = ChainSamples(4 * number // n_draws, number % (n_draws // 4), np.full(n_draws, 1.0 / n_draws), named=False)
    for chain in RULES[:2]:
        for expected in (2, 5, 10, 20, 50):
            rng, rows = np.random.default_rng([seed, expected, len(chain)]), []
            for share in (0.5, 0.9, 0.99):
                log_ratio = np.log(share / (1 - share) * (n_draws / expected - 1))
                for _ in range(n_sets):
                    is_rare, numbers = rng.random(n_draws) < expected / n_draws, 2 + rng.integers(3, size=n_draws)
                    numbers[is_rare] = 3
                    order = number if chain == RULES[0] else kept(rng, 4, n_draws // 4)
                    is_rare = is_rare[order]
                    found = importance(samples, log_ratio * is_rare, numbers[order], 30)
                    values = is_rare.astype(float)
                    far = abs(found.samples.mean(values) - share) > 3 * found.samples.mcse(values)
                    rows.append((found.is_reliable, found.is_reliable and far, is_rare.any()))
            reported, wrong, seen = np.array(rows, bool).T
            yield {
                "chains": chain,
                "draws expected": expected,
                "sets": len(rows),
                "reported": f"{reported.mean():.0%}",
                "beyond 3 errors": int(wrong.sum()),
                "of which without such a draw": int((wrong & ~seen).sum()),
            }


def _is_connected(chances):
    first, last = np.flatnonzero(chances > 1e-12)[[0, -1]]
    return bool(np.all(chances[first : last + 1] > 1e-12))


def _seconds(name, sizes):
    seconds = {f"{n:,}": used(TIMED[name].n_clusters, n).seconds for n in sizes}
    return {"prior of the number of clusters, seconds": name} | seconds
