"""What `summarize` finds in stored posteriors, how long it takes, and which part of that are further answers.

Then the same for made posteriors of 20,000 items, many of them ambiguous in the second, and of 800 records. The stored
ones are those of examples/data. The environment variable POSTERIORS names a folder with others in its subfolder pymc;
those without labels, galaxies_marginal_*.nc, hold w, mu, sigma of ten components and the observed y, and are summarised
with a model of these, where PyMC is installed.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import xarray as xr

import posterior_consensus as pc
from benchmarks._data import SHIPPED
from benchmarks._runner import used


def tables(smallest):
    folder = os.environ.get("POSTERIORS")
    files = sorted((Path(folder) / "pymc").glob("*.nc") if folder else SHIPPED.glob("*.nc"))
    yield "", _stored(files[: 1 if smallest else None])
    yield "", _made(*((300, 40, 40) if smallest else (20_000, 300, 800)))


def _stored(files):
    """A row for each file; the seconds are those of the second call."""
    for file in files:
        posterior = xr.open_datatree(file, engine="h5netcdf").load()
        model, refusal = None, _refusal(posterior)
        if refusal:
            print(f"{file.name} without a model: {refusal}")
            if "marginal" not in file.name or find_spec("pymc") is None:
                continue
            model = _model(posterior)
        for _ in range(2):
            call = used(pc.summarize, posterior, model=model, random_seed=1, progressbar=False)
        summary = call.result
        yield {
            "file": file.name,
            "what was taken": summary.source.replace("`", ""),
            "clusters": summary.consensus.n_clusters,
            "expected VI (bits)": f"{summary.consensus.expected_loss:.3f}",
            "chains": summary.diagnosis.status,
            "seconds": call.seconds,
            "answers / other steps": _share(summary),
        }


def _made(n_items, n_draws, n_records):
    rng = np.random.default_rng(1)
    certain = _noisy(rng, n_items, n_draws, np.full(n_items, 0.02))
    ambiguous = _noisy(rng, n_items, n_draws, np.where(rng.random(n_items) < 0.4, 0.5, 0.15))
    made = {
        f"{n_items:,} x {n_draws}, 40 clusters": certain,
        "the same, 4 in 10 items ambiguous": ambiguous,
        f"{n_records} records x {n_draws}": _records(rng, n_records, n_draws),
    }
    for name, labels in made.items():
        summary = pc.summarize(labels.reshape(4, n_draws // 4, -1), random_seed=1, progressbar=False)
        yield {
            "posterior": name,
            "clusters": summary.consensus.n_clusters,
            "answers": summary.answers.n_particles if summary.answers else 0,
            "seconds": sum(summary.seconds.values()),
            "answers / other steps": _share(summary),
        }


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
