"""Runs on cells as an AnnData, and a picture of them, with and without anndata and scanpy."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
from tutorial import DATA

__all__ = ["read_cells", "umap"]


def read_cells():
    """An AnnData of cells whose runs are columns of `obs`; without anndata, an object that has what is used of it."""
    table = pd.read_csv(DATA / "cells.csv", index_col="cell")
    is_run = table.columns.str.startswith("leiden_")
    obs = table.drop(columns=["umap_0", "umap_1"]).astype({name: "category" for name in table.columns[is_run]})
    places = {"X_umap": table[["umap_0", "umap_1"]].to_numpy()}
    try:
        from anndata import AnnData
    except ImportError:
        return SimpleNamespace(obs=obs, obs_names=obs.index, uns={}, obsm=places)
    return AnnData(obs=obs, obsm=places)


def umap(adata, color):
    """What ``sc.pl.umap(adata, color=color)`` shows, by Matplotlib: cells without a value are grey and small."""
    fig, axes = plt.subplots(1, len(color), figsize=(4.2 * len(color), 3.6), layout="constrained", squeeze=False)
    x, y = adata.obsm["X_umap"].T
    for ax, name in zip(axes[0], color, strict=True):
        values, is_number = adata.obs[name], adata.obs[name].dtype.kind == "f"
        known = values.notna().to_numpy()
        ax.scatter(x[~known], y[~known], s=3, color="lightgrey")
        if is_number:
            fig.colorbar(ax.scatter(x[known], y[known], s=8, c=values[known]), ax=ax)
        else:
            for k, category in enumerate(values.astype("category").cat.categories):
                own = (values == category).to_numpy()
                ax.scatter(x[own], y[own], s=8, color=plt.get_cmap("tab20")(k % 20), label=category)
            ax.legend(fontsize=7, markerscale=1.5, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        ax.set(title=name, xticks=[], yticks=[], xlabel="UMAP 1", ylabel="UMAP 2")
    return axes[0]
