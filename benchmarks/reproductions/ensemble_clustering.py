"""Figures 1 and 3 of Singh, Mukherjee, Peng and Xu (2007), "Ensemble clustering using semidefinite programming".

Figure 1: the share of items mislabelled by each scheme and by the consensus of 4 to 10 of them, on iris and wine.
Figure 3: 500 simulated ensembles, the objectives of Models 1 and 2 and the mean NMI of our answers beside those of the
better of two graph methods. Written to reproduction/ as PNG and CSV.
"""

import warnings
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from sklearn import cluster, datasets, mixture
from sklearn.preprocessing import StandardScaler

import posterior_consensus as pc
from benchmarks.reproductions._consensus_figures import save
from benchmarks.reproductions._folder import folder_of_results
from posterior_consensus.consensus.impurity import summed_impurity

N_SCHEMES = range(4, 11)
N_ENSEMBLES = 500
SHARE_PERMUTED = 0.15  # at most
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"


def tables(smallest):
    n_ensembles, n_schemes = (2, [4]) if smallest else (N_ENSEMBLES, N_SCHEMES)
    synergies = {name: synergy(name, n_schemes) for name in ("iris", "wine")}
    results = pd.DataFrame(joblib.Parallel(2)(joblib.delayed(comparison)(number) for number in range(n_ensembles)))
    for name, found in synergies.items():
        yield "", _errors(name, *found)
    yield f"relative gap below 1e-5: {np.mean(results['gap'] < 1e-5):.0%} of the ensembles", _summary(results)
    with folder_of_results(smallest) as folder:
        results.to_csv(folder / "ensemble_figure_3.csv", index=False, float_format="%.6f")
        save_synergy(synergies, folder / "ensemble_figure_1.png")
        save_comparison(results, folder / "ensemble_figure_3.png")
    print(f"\nwritten to {folder}/")


def _errors(name, errors, found):
    for m, of_consensus in found.iterrows():
        of_schemes = {"best scheme": errors[:m].min(), "mean": errors[:m].mean(), "worst": errors[:m].max()}
        yield {"data": name, "m": m} | of_schemes | of_consensus.to_dict()


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, of wine standardized, and the truth."""
    data = getattr(datasets, f"load_{name}")()
    return (StandardScaler().fit_transform(data.data) if name == "wine" else data.data), data.target


def ten_schemes(features: np.ndarray, k: int) -> dict[str, np.ndarray]:
    """Labels of ten of scikit-learn's methods by name: an ensemble as analysts make it."""
    schemes = {
        "k-means": cluster.KMeans(k, n_init=10, random_state=1),
        "Ward": cluster.AgglomerativeClustering(k, linkage="ward"),
        "average linkage": cluster.AgglomerativeClustering(k, linkage="average"),
        "normal mixture, diagonal": mixture.GaussianMixture(k, covariance_type="diag", n_init=5, random_state=1),
        "spectral, neighbours": cluster.SpectralClustering(k, affinity="nearest_neighbors", random_state=1),
        "complete linkage": cluster.AgglomerativeClustering(k, linkage="complete"),
        "Birch": cluster.Birch(n_clusters=k),
        "spectral, Gaussian": cluster.SpectralClustering(k, gamma=0.1, random_state=1),
        "normal mixture": mixture.GaussianMixture(k, n_init=5, random_state=1),
        "bisecting k-means": cluster.BisectingKMeans(k, random_state=1),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a graph that is not connected
        return {name: scheme.fit_predict(features) for name, scheme in schemes.items()}


def synergy(name: str, n_schemes: list[int] | range) -> tuple[np.ndarray, pd.DataFrame]:
    """Error of every scheme, and for each number of schemes that of the consensus, with its gap."""
    features, truth = table(name)
    labels = np.array(list(ten_schemes(features, 3).values()))
    errors = np.array([pc.losses.misclassification_distance(one, truth) for one in labels])
    rows = {}
    for m in n_schemes:
        best, k_means = (answer(labels[:m], method, 3) for method in ("sdp", "kcc"))
        rows[m] = {
            "sdp": pc.losses.misclassification_distance(best, truth),
            "kcc": pc.losses.misclassification_distance(k_means, truth),
            "gap": best.optimality_gap,
            "different items": best.info.n_signatures,
        }
    return errors, pd.DataFrame.from_dict(rows, orient="index")


def answer(labels: np.ndarray, method: str, k: int) -> pc.results.ConsensusPartition:
    """The method's answer, judged by the objective of Model 2."""
    return pc.consensus_partition(
        labels, loss="within_variance", method=method, n_clusters=k, random_seed=1, progressbar=False
    )


def save_synergy(synergies: dict, file: Path) -> None:
    """Circles for the schemes, a line for the consensus, as in Figure 1."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes, (name, (errors, found)) in zip(panels, synergies.items(), strict=True):
        for m in found.index:
            label = "each scheme" if m == found.index[0] else None
            axes.plot(np.full(m, m), errors[:m], "o", mfc="none", color=GREY, markersize=5, label=label)
        axes.plot(found.index, found["sdp"], "^-", color=BLUE, label="consensus (sdp)")
        axes.set(xlabel="number m of schemes", title=name, xticks=list(found.index))
    panels[0].set_ylabel("share of items mislabelled")
    panels[1].legend(frameon=False)
    save(figure, file)


def comparison(number: int) -> dict:
    """Our answers and the graph methods' on one simulated ensemble."""
    rng = np.random.default_rng(number)
    labels, k = permuted_ensemble(rng)
    draws = pc.as_partition_draws(labels)
    rivals = [spectral_cut(draws, k), clusters_of_clusters(draws, k)]
    one = pc.consensus_partition(draws, method="impurity", n_clusters=k, random_seed=1, progressbar=False)
    two = answer(labels, "sdp", k)
    models = {
        "model 1": ([summed_impurity(draws, rival) for rival in rivals], one.info.objective),
        "model 2": (pc.expected_loss(draws, rivals, loss="within_variance")["expected_loss"].values, two.expected_loss),
    }
    found = {
        "ensemble": number,
        "n_items": labels.shape[1],
        "n_clusters": k,
        "m": len(labels),
        "gap": two.optimality_gap,
    }
    for name, (theirs, ours) in models.items():
        found[f"{name}, ours"], found[f"{name}, graphs"] = ours, min(theirs)
    nmi = 1 - pc.expected_loss(draws, [two, *rivals], loss="nmi")["expected_loss"].values
    return found | {"nmi, ours": nmi[0], "nmi, graphs": nmi[1:].max()}


def permuted_ensemble(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """An initial partition of unequal parts, permuted again and again: up to 15% of the items change places a time."""
    n_items, k, m = int(rng.integers(30, 101)), int(rng.integers(3, 7)), int(rng.integers(4, 11))
    labels = np.concatenate([np.arange(k), rng.choice(k, n_items - k, p=rng.dirichlet(np.full(k, 2.0)))])
    ensemble = []
    for _ in range(m):
        items = rng.choice(n_items, int(n_items * rng.uniform(0, SHARE_PERMUTED)), replace=False)
        labels = labels.copy()
        labels[items] = labels[rng.permutation(items)]
        ensemble.append(labels)
    return np.array(ensemble), k


def spectral_cut(draws: pc.results.PartitionDraws, k: int) -> np.ndarray:
    """The similarity graph of the items cut into k parts (IBGF), by its normalized cut in place of METIS."""
    found = pc.consensus_partition(
        draws, loss="vi", method="spectral", affinity="association", n_clusters=k, random_seed=1, progressbar=False
    )
    return found.labels.values


def clusters_of_clusters(draws: pc.results.PartitionDraws, k: int) -> np.ndarray:
    """Clusters of all draws in k groups by their Jaccard similarity (CBGF), and the items' votes for these."""
    members = np.concatenate(
        [np.eye(number)[one].T for one, number in zip(draws.labels, draws.n_clusters, strict=True)]
    )
    groups = fcluster(linkage(pdist(members > 0, "jaccard"), "average"), k, "maxclust") - 1
    votes = np.array([members[groups == group].mean(axis=0) for group in range(groups.max() + 1)])
    return votes.argmax(axis=0)


def _summary(results):
    """Mean and median of what Figure 3 shows, and how often ours is better."""
    for quantity, (values, gain) in gains(results).items():
        yield {
            "quantity": quantity,
            "mean": float(values.mean()),
            "median": float(values.median()),
            "better": f"{np.mean(gain > 1e-9):.0%}",
            "equal": f"{np.mean(abs(gain) <= 1e-9):.0%}",
            "worse": f"{np.mean(gain < -1e-9):.0%}",
        }


def gains(results: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series]]:
    """What Figure 3 shows, a ratio or a difference, and by how much ours is better."""
    found = {}
    for name in ("model 1", "model 2"):
        ours, theirs = results[f"{name}, ours"], results[f"{name}, graphs"]
        ratio = (theirs / ours.where(ours > 0)).mask((ours == 0) & (theirs == 0), 1.0)
        found[f"{name}, theirs / ours"] = ratio, theirs - ours
    difference = results["nmi, ours"] - results["nmi, graphs"]
    return found | {"NMI, ours less theirs": (difference, difference)}


def save_comparison(results: pd.DataFrame, file: Path) -> None:
    """Histograms of the ratios of the objectives and of the differences of NMI, as in Figure 3."""
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axes, (title, (values, _)) in zip(panels, gains(results).items(), strict=True):
        axes.hist(values.dropna(), bins=40, color=BLUE)
        axes.axvline(0.0 if title.startswith("NMI") else 1.0, color=ORANGE, linestyle="--")
        axes.set(xlabel=title)
    panels[0].set_ylabel("number of ensembles")
    save(figure, file)
