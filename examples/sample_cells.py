"""Cluster cells by Leiden with several seeds and resolutions, and by HDBSCAN on UMAP with several seeds.

The data are 700 peripheral blood mononuclear cells and 765 genes: the subset of the 68,000 cells of Zheng et al.
(2017), https://doi.org/10.1038/ncomms14049, that scanpy ships as ``sc.datasets.pbmc68k_reduced()``, with principal
components, neighbours and UMAP. ``bulk_labels`` are types that Zheng et al. assigned by the correlation with purified
cells; they are no truth. 10x Genomics published the counts under CC BY 4.0.

Run ``python sample_cells.py`` to write ``cells.csv``, a row for each cell and a column for each run. It takes half
a minute, and needs scanpy and leidenalg: ``pip install scanpy leidenalg``.
"""

from pathlib import Path

import pandas as pd
import scanpy as sc
from sklearn.cluster import HDBSCAN

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
RESOLUTIONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
SEEDS = range(20)
SMALL = {"min_cluster_size": 15, "min_samples": 5, "cluster_selection_method": "leaf"}


def main():
    adata = sc.datasets.pbmc68k_reduced()
    columns = {"bulk_labels": adata.obs["bulk_labels"]}
    columns |= {f"umap_{k}": adata.obsm["X_umap"][:, k].round(2) for k in range(2)}
    options = {"flavor": "igraph", "n_iterations": 2, "directed": False}
    for resolution in RESOLUTIONS:
        for seed in SEEDS:
            sc.tl.leiden(adata, resolution=resolution, random_state=seed, **options)
            columns[f"leiden_{resolution}_{seed}"] = adata.obs["leiden"].astype(int)
    for seed in SEEDS:
        again = sc.tl.umap(adata, random_state=seed, copy=True).obsm["X_umap"]
        columns[f"hdbscan_{seed}"] = HDBSCAN(**SMALL, copy=True).fit(again).labels_
    pd.DataFrame(columns, adata.obs_names.rename("cell")).to_csv(EXAMPLES / "cells.csv", lineterminator="\n")


if __name__ == "__main__":
    main()
