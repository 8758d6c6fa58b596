"""What `summarize` finds in stored posteriors, how long it takes, and which part of that are further answers.

Then the same for made posteriors of 20,000 items, many of them ambiguous in the second, and of 800 records. The stored
ones are those of examples/data. The environment variable POSTERIORS names a folder with others in its subfolder pymc;
those without labels, galaxies_marginal_*.nc, hold w, mu, sigma of ten components and the observed y, and are summarised
with a model of these, where PyMC is installed.
"""

import os
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._timing import is_smallest, print_table

EXAMPLES = Path(__file__).parents[1] / "examples" / "data"


def main() -> None:
    """Print one row per file; the seconds are those of the second call."""
    _print_stored()
    print()
    _print_made()


def _print_stored() -> None:
    folder = os.environ.get("POSTERIORS")
    files = sorted((Path(folder) / "pymc").glob("*.nc") if folder else EXAMPLES.glob("*.nc"))
    rows = []
    for file in files[:1] if is_smallest() else files:
        posterior = xr.open_datatree(file, engine="h5netcdf").load()
        model, refusal = None, _refusal(posterior)
        if refusal:
            print(f"{file.name} without a model: {refusal}")
            if "marginal" not in file.name or find_spec("pymc") is None:
                continue
            model = _model(posterior)
        for _ in range(2):
            began = time.perf_counter()
            summary = pc.summarize(posterior, model=model, random_seed=1, progressbar=False)
            seconds = time.perf_counter() - began
        best = summary.consensus
        status, source = summary.diagnosis.status, summary.source.replace("`", "")
        rows.append([file.name, source, best.n_clusters, f"{best.expected_loss:.3f}", status, seconds, _share(summary)])
    columns = ["file", "what was taken", "clusters", "expected VI (bits)", "chains", "seconds", "answers / other steps"]
    print_table(columns, rows)


def _print_made() -> None:
    rng = np.random.default_rng(1)
    n_items, n_draws, n_records = (300, 40, 40) if is_smallest() else (20_000, 300, 800)
    made = {
        f"{n_items:,} x {n_draws}, 40 clusters": _noisy(rng, n_items, n_draws, np.full(n_items, 0.02)),
        "the same, 4 in 10 items ambiguous": _noisy(
            rng, n_items, n_draws, np.where(rng.random(n_items) < 0.4, 0.5, 0.15)
        ),
        f"{n_records} records x {n_draws}": _records(rng, n_records, n_draws),
    }
    rows = []
    for name, labels in made.items():
        summary = pc.summarize(labels.reshape(4, n_draws // 4, -1), random_seed=1, progressbar=False)
        found = summary.answers.n_particles if summary.answers else 0
        rows.append([name, summary.consensus.n_clusters, found, sum(summary.seconds.values()), _share(summary)])
    print_table(["posterior", "clusters", "answers", "seconds", "answers / other steps"], rows)


def _share(summary: pc.results.Summary) -> float:
    """Seconds that the further answers took, of those of all other steps but the reading."""
    other = [seconds for step, seconds in summary.seconds.items() if step not in ("draws", "answers")]
    return summary.seconds["answers"] / sum(other)


def _noisy(rng: np.random.Generator, n_items: int, n_draws: int, noise: np.ndarray) -> np.ndarray:
    """Draws around 40 clusters, in which each item goes astray with a probability of its own."""
    truth = rng.integers(40, size=n_items)
    astray = rng.random((n_draws, n_items)) < noise
    return np.where(astray, rng.integers(40, size=astray.shape), truth).astype(np.int16)


def _records(rng: np.random.Generator, n_records: int, n_draws: int) -> np.ndarray:
    """Draws of a record linkage: clusters of one to five records, of which some are missed and some are joined."""
    truth = np.repeat(np.arange(n_records), rng.integers(1, 6, size=n_records))[:n_records]
    shape = n_draws, n_records
    labels = np.where(rng.random(shape) < 0.1, n_records + np.arange(n_records), truth)
    return np.where(rng.random(shape) < 0.05, np.roll(truth, 3), labels).astype(np.int16)


def _model(posterior: xr.DataTree) -> object:
    """A mixture of normals whose priors do not matter."""
    import pymc as pm

    y, n_components = posterior["observed_data"]["y"].values, posterior["posterior"].sizes["component"]
    with pm.Model(coords={"component": np.arange(n_components)}) as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0)
        w = pm.StickBreakingWeights("w", alpha, K=n_components - 1, dims="component")
        mu = pm.Normal("mu", 20.0, 10.0, dims="component")
        sigma = pm.HalfNormal("sigma", 1.0, dims="component")
        pm.NormalMixture("y", w=w, mu=mu, sigma=sigma, observed=y)
    return model


def _refusal(posterior: xr.DataTree) -> str:
    """What is said where there is nothing to summarise."""
    try:
        pc.summarize(posterior, progressbar=False)
    except ValueError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
