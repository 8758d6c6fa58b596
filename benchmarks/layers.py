"""Layers: intervals of distances, errors if layers are independent, false alarms of changes, time and memory."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

import posterior_consensus as pc
from benchmarks import _runner
from posterior_consensus.diagnostics.traces import same_draw_losses

REPETITIONS, SIMULATED = 200, 60
SIZES = ((50, 2_000, 1_000), (1_000, 100, 500))  # layers, items, draws
OF_RUNS = (  # layers, items, runs of a layer, clusters that a layer has more than the one before, share of noise
    (10, 100_000, 10, 3, 0.0),
    (20, 100_000, 20, 3, 0.0),
    (10, 100_000, 10, 50, 0.0),
    (10, 100_000, 10, 3, 0.2),
)
CHAINS = {
    "4 of 250 independent draws": (4, 250, 1.0),
    "1 of 400 independent draws": (1, 400, 1.0),
    "4 of 250, an item moves with .3": (4, 250, 0.3),
    "4 of 1,000, an item moves with .1": (4, 1_000, 0.1),
    "1 of 2,000, an item moves with .2": (1, 2_000, 0.2),
}
WEIGHTED = {f"{name}, weighted": CHAINS[name] for name in list(CHAINS)[:3]}
OF_CHANGES = {  # chains, draws, probability that an item keeps its label from draw to draw
    "4 of 250 independent draws": (4, 250, 0.0),
    "4 of 300, ESS 53 a chain": (4, 300, 0.7),
    "1 of 1,000, ESS 53": (1, 1_000, 0.9),
    "4 of 300, ESS 20 a chain": (4, 300, 0.875),
    "1 of 1,000, ESS 10": (1, 1_000, 0.98),
}
NOISES = {  # shares of random labels in the two layers, and what else is uncertain in both
    "noise .1 and .1": (0.1, 0.1, ""),
    "noise .25 and .25": (0.25, 0.25, ""),
    "noise .05 and .25": (0.05, 0.25, ""),
    "noise .05 and .25, 12 items between 3 clusters": (0.05, 0.25, "between"),
    "noise .05 and .25, 2 clusters joined in half of the draws": (0.05, 0.25, "joined"),
}
N_LAYERS = 10  # of a family
STARTS = {"The clustering changed": "changed", "It is unsure": "unsure"}  # of a verdict
MOVER_NOISES = 0.1, 0.2, 0.3, 0.4, 0.5
TRUTH = np.repeat(np.arange(6), 10)
BETWEEN = np.arange(0, 60, 5)  # items that are in one of three clusters at random
MOVED = (1, 3, 10)
N_GROUPS, N_MEMBERS, N_DRAWS = 8, 5, 400  # of the model whose posterior is sampled exactly
SPREAD = 2.0  # of the clusters' means, in standard deviations of an observation
STRENGTHS = {"layers nearly alike": 8.0, "a few changes": 3.0, "independent": 0.0}


def tables(smallest):
    repetitions = 3 if smallest else REPETITIONS
    yield (
        f"90% intervals of the loss between two layers, {repetitions} data sets from the model",
        (_of_coverage(name, strength, repetitions) for name, strength in STRENGTHS.items()),
    )
    yield (
        f"Layers that are independent, {2 * repetitions} posteriors each",
        (
            _of_independence(name, case, 2 * repetitions, name in WEIGHTED)
            for name, case in list((CHAINS | WEIGHTED).items())[: 2 if smallest else None]
        ),
    )
    simulated = 6 if smallest else SIMULATED
    yield (
        f"False alarms: nothing moved, {simulated} posteriors each",
        (
            _of_alarms(chains, noise, simulated)
            for chains in list(OF_CHANGES)[: 1 if smallest else None]
            for noise in list(NOISES)[: 1 if smallest else None]
        ),
    )
    yield (
        f"Changes that are found, noise .05 and .25, {simulated // 6} posteriors each",
        (
            _of_changes(chains, n_moved, simulated // 6)
            for chains in list(OF_CHANGES)[: 1 if smallest else None]
            for n_moved in MOVED
        ),
    )
    yield (
        f"Families of {N_LAYERS - 1} steps in which nothing moved, {simulated} each",
        (
            _of_families(chains, noise, simulated)
            for chains in list(OF_CHANGES)[: 1 if smallest else 3]
            for noise in list(NOISES)[: 1 if smallest else 2]
        ),
    )
    yield (
        f"A mover that is noisy itself, noise .05 and .25, {simulated // 2} posteriors each",
        (_of_noisy_mover(noise, simulated // 2) for noise in MOVER_NOISES[: 1 if smallest else None]),
    )
    sizes = ((4, 50, 40), (60, 20, 40)) if smallest else SIZES
    yield "Time and memory", (_runner.apart(_of_time, *size) for size in sizes)
    sizes = ((3, 60, 4, 3, 0.0), (3, 60, 4, 3, 0.2)) if smallest else OF_RUNS
    yield "Layers of runs, time and memory", (_runner.apart(_of_runs, *size) for size in sizes)


def coverage(strength: float, repetitions: int) -> tuple[float, float, float, float]:
    """Share of 90% intervals of VI and of Binder's loss that hold the truth; of VI, their mean probability and width.

    A group of five items has a partition in each layer. The first is from a Chinese restaurant process, the second one
    from the same times exp(-strength VI). Both layers observe each item with normal noise about the mean of its
    cluster. All 52 x 52 partitions of a group are enumerated, and draws are independent and from the posterior itself.
    Partitions of all items are unions of those of groups.
    """
    rng = np.random.default_rng(1)
    partitions = np.array(
        [
            p
            for p in itertools.product(range(5), repeat=5)
            if all(k <= max(p[:i], default=-1) + 1 for i, k in enumerate(p))
        ]
    )
    sizes = [np.bincount(p) for p in partitions]
    log_prior = np.array([np.log([np.prod(np.arange(1, m)) for m in own if m]).sum() for own in sizes])
    log_joint = log_prior - strength * pc.partition_loss(partitions).values
    log_joint += (log_prior - logsumexp(log_prior) - logsumexp(log_joint, axis=1))[:, np.newaxis]
    held, of_vi = [], []
    for _ in range(repetitions):
        truth, draws = [], []
        for group in range(N_GROUPS):
            at = _sampled(log_joint, 1, rng)[:, 0]
            observed = [_observed(partitions[k], rng) for k in at]
            evidence = [np.array([_log_evidence(p, y) for p in partitions]) for y in observed]
            drawn = _sampled(log_joint + evidence[0][:, np.newaxis] + evidence[1], N_DRAWS, rng)
            truth.append(N_MEMBERS * group + partitions[at])
            draws.append(N_MEMBERS * group + partitions[drawn])
        truth, draws = np.concatenate(truth, axis=1), np.concatenate(draws, axis=2).swapaxes(0, 1)
        given = {"partitions": list(truth), "progressbar": False}  # distances are the same for any
        found = [pc.compare_layers(draws, loss=loss, **given).distances for loss in ("vi", "binder")]
        at = [one.isel(layer=0, other_layer=1) for one in found]
        losses = [pc.partition_loss(*truth, loss=loss) for loss in ("vi", "binder")]
        held.append([one["low"] - 1e-9 <= loss <= one["high"] + 1e-9 for one, loss in zip(at, losses, strict=True)])
        low, high = float(at[0]["low"]), float(at[0]["high"])
        ((_, drawn),) = same_draw_losses(pc.as_layers(draws), [(0, 1)], pc.vi())
        of_vi.append([np.mean((drawn >= low - 1e-9) & (drawn <= high + 1e-9)), high - low])
    return (*np.mean(held, axis=0).tolist(), *np.mean(of_vi, axis=0).tolist())


def within_two_errors(
    n_chains: int, length: int, moves: float, repetitions: int, weighted: bool = False
) -> tuple[float, float]:
    """Share of differences within two of their errors, and mean error over the differences' root mean square.

    In a chain of either layer each of 30 items gets a new label with this probability from draw to draw. Weights are
    exponential: Kish's effective number is half that of the draws.
    """
    rng = np.random.default_rng(2)
    found = []
    for _ in range(repetitions):
        draws = np.stack([_chains(rng, n_chains, length, moves) for _ in range(2)], axis=2)
        weights = rng.exponential(size=n_chains * length) if weighted else None
        layers = pc.as_layers(draws, weights=weights)
        compared = pc.compare_layers(layers, partitions=list(draws[0, 0]), progressbar=False)
        at = compared.distances.isel(layer=0, other_layer=1)
        found.append([float(at["difference"]), float(at["difference_mcse"])])
    differences, errors = np.array(found).T
    within = np.abs(differences) <= 2 * errors
    return float(within.mean()), float(np.sqrt(np.square(errors).mean() / np.square(differences).mean()))


class Compared(NamedTuple):
    """What compare_layers() says of two layers between which some items moved."""

    verdict: str  # "changed", "unsure" or "no change"
    separation: float
    error: float
    named: int  # items that moved, and that are said to
    wrong: int  # items that did not move but are said to


def changes(chains: tuple[int, int, float], noise: tuple[float, float, str], n_moved: int, seed: int) -> Compared:
    """Compare two layers of 60 items, of which some are in another of the six clusters in the second layer.

    In each layer each item has a random label with its noise, else its true one. It keeps its label from draw to draw
    with the chain's probability.
    """
    rng = np.random.default_rng(
        [seed, n_moved, chains[0], int(100 * chains[2]), *(int(100 * one) for one in noise[:2])]
    )
    movers = rng.choice(np.setdiff1d(np.arange(60), BETWEEN), n_moved, replace=False)
    after = TRUTH.copy()
    after[movers] = (after[movers] + rng.integers(1, 6, n_moved)) % 6
    draws = [_noisy(rng, truth, *chains, own, noise[2]) for truth, own in zip((TRUTH, after), noise, strict=False)]
    found = pc.compare_layers(np.stack(draws, axis=2), random_seed=1, progressbar=False)
    verdict = _verdict(found)
    clear, step = np.flatnonzero(found.overlaps["clear"].values[0]), found.steps.isel(step=0)
    n_right = np.isin(clear, movers).sum() if verdict == "changed" else 0
    n_wrong = np.isin(clear, movers, invert=True).sum() if verdict == "changed" else 0
    return Compared(verdict, float(step["separation"]), float(step["separation_mcse"]), int(n_right), int(n_wrong))


def _of_families(chains, noise, repetitions):
    """Verdicts on layers in an order, between which nothing moved; layers have the two noises in turn."""
    verdicts, separations = [], []
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, *f"{chains} {noise}".encode()])
        own = NOISES[noise]
        draws = [_noisy(rng, TRUTH, *OF_CHANGES[chains], own[layer % 2], own[2]) for layer in range(N_LAYERS)]
        found = pc.compare_layers(
            np.stack(draws, axis=2), partitions=[TRUTH] * N_LAYERS, max_lag=1, random_seed=1, progressbar=False
        )
        verdicts.append(_verdict(found))
        steps = found.steps
        separations.append((steps["separation"] / steps["separation_mcse"]).values)
    most = np.max(separations, axis=1)
    return {
        "chains": chains,
        "posterior of each layer": noise,
        **{f"{name}": f"{verdicts.count(name) / repetitions:.0%}" for name in (*STARTS.values(), "no change")},
        "a step above two errors": f"{np.mean(most > 2):.0%}",
        "above 2.8": f"{np.mean(most > norm.isf(norm.sf(2) / (N_LAYERS - 1))):.0%}",
    }


def _of_noisy_mover(noise, repetitions):
    """Verdicts if an item moves that is in a random cluster with its own noise, in both layers."""
    found, moved = [], []
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, int(100 * noise)])
        after = TRUTH.copy()
        after[1] = 3
        draws = [
            _noisy(rng, truth, 4, 250, 0.0, own, "") for truth, own in zip((TRUTH, after), (0.05, 0.25), strict=True)
        ]
        for labels, truth in zip(draws, (TRUTH, after), strict=True):
            random = rng.random((4, 250)) < noise
            labels[..., 1] = np.where(random, rng.integers(6, size=random.shape), truth[1])
        compared = pc.compare_layers(np.stack(draws, axis=2), random_seed=1, progressbar=False)
        found.append(_verdict(compared))
        moved.append(float(compared.overlaps["moved"].values[0, 1]))
    return {
        "noise of the mover": noise,
        "P(moved)": f"{np.mean(moved):.2f}",
        **{name: f"{found.count(name) / repetitions:.0%}" for name in (*STARTS.values(), "no change")},
    }


def _of_nothing(chains: str, noise: str, repetitions: int) -> list[Compared]:
    """Results of this many posteriors if nothing moved."""
    return [changes(OF_CHANGES[chains], NOISES[noise], 0, seed) for seed in range(repetitions)]


def _verdict(found):
    return next((name for start, name in STARTS.items() if found.verdict.startswith(start)), "no change")


def false_alarms(chains: str, noise: str, repetitions: int) -> dict[str, float]:
    """Shares of the verdicts if nothing moved."""
    return _shares(_of_nothing(chains, noise, repetitions))


def _shares(found: list[Compared]) -> dict[str, float]:
    verdicts = [one.verdict for one in found]
    return {verdict: verdicts.count(verdict) / len(found) for verdict in ("changed", "unsure", "no change")}


def _noisy(rng, truth, n_chains, length, stays, noise, kind):
    """Labels (chains, draws, 60) of a layer."""
    fresh = np.where(rng.random((n_chains, length, 60)) < noise, rng.integers(6, size=(n_chains, length, 60)), truth)
    if kind == "between":
        shift = rng.integers(3, size=(n_chains, length, BETWEEN.size))
        fresh[..., BETWEEN] = (truth[BETWEEN] + shift) % 6
    labels = _kept(rng, fresh, stays)
    if kind == "joined":
        joined = _kept(rng, rng.random((n_chains, length, 1)) < 0.5, stays)
        labels = np.where(joined & (labels == 1), 0, labels)
    return labels


def _kept(rng, fresh, stays):
    """Values (chains, draws, m) that stay from draw to draw with this probability, else are fresh."""
    renewed = rng.random(fresh.shape) >= stays
    renewed[:, 0] = True
    last = np.maximum.accumulate(np.where(renewed, np.arange(fresh.shape[1])[:, np.newaxis], 0), axis=1)
    return np.take_along_axis(fresh, last, axis=1)


def _of_alarms(chains, noise, repetitions):
    found = _of_nothing(chains, noise, repetitions)
    separations, errors = (np.array([getattr(one, name) for one in found]) for name in ("separation", "error"))
    return {
        "chains": chains,
        "posterior of each layer": noise,
        **{name: f"{one:.0%}" for name, one in _shares(found).items()},
        "separation, bits": f"{separations.mean():.4f}",
        "standard deviation": f"{separations.std():.4f}",
        "root mean square error": f"{np.sqrt(np.square(errors).mean()):.4f}",
        "above two errors": f"{np.mean(separations > 2 * errors):.0%}",
    }


def _of_changes(chains, n_moved, repetitions):
    noise = NOISES["noise .05 and .25"]
    found = [changes(OF_CHANGES[chains], noise, n_moved, seed) for seed in range(repetitions)]
    changed = max(sum(one.verdict == "changed" for one in found), 1)
    return {
        "chains": chains,
        "moved": n_moved,
        **{name: f"{one:.0%}" for name, one in _shares(found).items()},
        "separation, bits": float(np.mean([one.separation for one in found])),
        "movers named": f"{sum(one.named for one in found) / changed / n_moved:.0%}",
        "others named": f"{sum(one.wrong for one in found) / changed:.2f}",
    }


def _of_coverage(name, strength, repetitions):
    of_vi, of_binder, drawn, width = coverage(strength, repetitions)
    return {
        "layers": name,
        "truth in the interval, VI": f"{of_vi:.1%}",
        "draws in it": f"{drawn:.1%}",
        "mean width, bits": f"{width:.2f}",
        "truth in the interval, Binder": f"{of_binder:.1%}",
    }


def _of_independence(name, case, repetitions, weighted):
    share, ratio = within_two_errors(*case, repetitions, weighted)
    return {"chains of each layer": name, "within two errors": f"{share:.1%}", "error over spread": f"{ratio:.2f}"}


def _of_time(n_layers, n_items, n_draws):
    rng = np.random.default_rng(3)
    draws = np.empty((4, n_draws // 4, n_layers, n_items), np.uint8)
    base = rng.integers(0, 15, n_items)
    for layer in range(n_layers):
        base = np.where(rng.random(n_items) < 0.03, rng.integers(0, 15, n_items), base)
        noisy = rng.random((4, n_draws // 4, n_items)) < 0.2
        draws[:, :, layer] = np.where(noisy, rng.integers(0, 15, noisy.shape), base)
    layers = pc.as_layers(draws)
    pc.compare_layers(pc.as_layers(draws[:, :, :2]), random_seed=1, progressbar=False)
    call = _runner.used(pc.compare_layers, layers, random_seed=1, progressbar=False)
    pairs = len(call.result.to_dataframe())
    size = f"{n_layers:,} x {n_items:,} x {n_draws:,}"
    return {
        "layers x items x draws": size,
        "pairs": f"{pairs:,}",
        "seconds": call.seconds,
        "CPU seconds": call.cpu,
        "GB beyond the labels": call.gigabytes,
    }


def _of_runs(n_layers, n_items, n_runs, n_more, noise):
    few = make_runs(2, 300, n_runs, n_more, noise), make_runs(2, min(n_items, 20_000), n_runs, n_more, noise)
    for layers in few:  # which compiles what few and many items need
        pc.compare_layers(layers, random_seed=1, progressbar=False)
    layers = make_runs(n_layers, n_items, n_runs, n_more, noise)
    call = _runner.used(pc.compare_layers, layers, random_seed=1, progressbar=False)
    return {
        "layers x items x runs": f"{n_layers} x {n_items:,} x {n_runs}",
        "clusters": " to ".join(str(number) for number in call.result.to_dataframe()["n_clusters"].iloc[[0, -1]]),
        "noise": f"{noise:.0%}",
        "seconds": call.seconds,
        "CPU seconds": call.cpu,
        "GB beyond the labels": call.gigabytes,
    }


def make_runs(n_layers: int, n_items: int, n_runs: int, n_more: int, noise: float) -> pc.results.Layers:
    """Runs of 4, 4 + `n_more`, ... clusters of 1,000 groups: 5% of the groups and 3% of the items are anywhere."""
    rng = np.random.default_rng(4)
    group, often = rng.integers(1_000, size=n_items), np.where(rng.random(n_items) < noise, 0.8, 0.05)
    rows = np.empty((n_layers, n_runs, n_items), np.int16)
    for layer in range(n_layers):
        k = 4 + n_more * layer
        cluster = np.append(np.arange(min(k, 1_000)), rng.integers(k, size=max(1_000 - k, 0)))
        for row in rows[layer]:
            own = np.where(rng.random(1_000) < 0.05, rng.integers(k, size=1_000), cluster)
            row[:] = np.where(rng.random(n_items) < 0.03, rng.integers(k, size=n_items), own[group])
            if noise:
                row[rng.random(n_items) < often] = -1
    groups = np.repeat(np.arange(n_layers), n_runs)
    return pc.as_layers(pc.as_runs(rows.reshape(-1, n_items), groups=groups, noise=-1 if noise else None))


def _sampled(log_weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Rows and columns (2, size) of a table, drawn by these weights."""
    weights = np.exp(log_weights - logsumexp(log_weights)).ravel()
    return np.array(np.unravel_index(rng.choice(weights.size, size, p=weights / weights.sum()), log_weights.shape))


def _observed(partition: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return SPREAD * rng.normal(size=5)[partition] + rng.normal(size=partition.size)


def _log_evidence(partition: np.ndarray, observed: np.ndarray) -> float:
    """Log density of observations given the partition, the clusters' means integrated out, but for a constant."""
    sizes, sums = np.bincount(partition), np.bincount(partition, observed)
    variance = 1 + sizes * SPREAD**2
    return float(0.5 * (SPREAD**2 / variance * sums**2).sum() - 0.5 * np.log(variance).sum())


def _chains(rng: np.random.Generator, n_chains: int, length: int, moves: float) -> np.ndarray:
    """Labels (chains, draws, 30)."""
    fresh = rng.integers(4, size=(n_chains, length, 30))
    moved = rng.random(fresh.shape) < moves
    moved[:, 0] = True
    last = np.maximum.accumulate(np.where(moved, np.arange(length)[:, np.newaxis], 0), axis=1)
    return np.take_along_axis(fresh, last, axis=1)
