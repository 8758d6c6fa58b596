# %% [markdown]
# # From runs of a clustering program to one clustering
#
# Leiden, HDBSCAN and topic models find another clustering with another seed. Which one should a paper report, which
# cells belong to another cluster in another run, and at which resolution do runs agree?
#
# The data are 700 blood cells that scanpy ships (Zheng et al. 2017). `sample_cells.py` ran Leiden with 20 seeds at each
# of seven resolutions, and HDBSCAN on 20 UMAPs. Each run is a column of `adata.obs`. Without anndata, as when this page
# was made, an object stands in for the AnnData that has what is used of it. All code is the same with
# `AnnData(obs=obs, obsm=places)`.

# %%
from types import SimpleNamespace

import matplotlib.pyplot as plt

import posterior_consensus as pc

cells = pc.load_example("cells")
places = {"X_umap": cells[["umap_0", "umap_1"]].to_numpy()}
is_run = cells.columns.str.startswith("leiden_")
obs = cells.drop(columns=["umap_0", "umap_1"]).astype(dict.fromkeys(cells.columns[is_run], "category"))
adata = SimpleNamespace(obs=obs, obs_names=obs.index, uns={}, obsm=places)
adata.obs.iloc[:3, :5]

# %% [markdown]
# ## Read the runs
#
# `as_runs` takes the columns whose names match a pattern. `groups` says what runs differ in besides the seed: what
# stands in the place of `{}` in their names, here the resolution. Labels of different runs have nothing to do with each
# other.

# %%
runs = pc.as_runs(adata, "leiden_*", groups="leiden_{}_*")
runs

# %% [markdown]
# ## Which resolution?
#
# `as_layers` makes a layer of each resolution, and `summarize` compares and summarizes them; `compare_layers` only
# compares them. The comparison says how far two runs of one resolution are apart: `distance` is the mean VI between two
# runs, `chance` what it would be if the labels of one were shuffled. `stability` is 1 if all runs are equal, and 0 if
# they agree no more than by chance.

# %%
layers = pc.as_layers(runs, layer_dim="resolution")
summaries = pc.summarize(layers, random_seed=1, progressbar=False)
found = summaries.comparison
found

# %%
# Figure: Stability and number of clusters at each resolution, and flows of cells between the consensus partitions
# of successive resolutions.
axes = found.plot()

# %% [markdown]
# Stability does not fall steadily: runs disagree at 0.4, where some find seven clusters and others eight, and agree
# again at 0.6, where all find nine. Its errors allow for an answer that none of the 20 runs gave, so it is not clear at
# which resolution runs agree most. Stability is not correctness. At 0.2 all runs find the same seven clusters: the
# program has one answer there, but there need not be seven types of cells.
#
# A summary has a line for each cluster. At 0.4, two clusters of 218 cells in all are one in 40% of the runs, and all
# others are in every run.

# %%
summaries[0.4].clusters

# %%
# Figure: Share of the runs that have each cluster: all but for two of them, which are one in 40% of the runs.
ax = summaries[0.4].clusters.plot()

# %% [markdown]
# The shortlist is 0.2 and 0.6: runs agree there at least as much as at the resolutions beside them.
#
# ## One tree
#
# The consensus partitions of successive resolutions are not quite nested: a few cells change sides. `consensus_tree`
# searches for partitions of which each refines the coarser one, such that the sum of expected losses is least.

# %%
tree = pc.consensus_tree(layers, partitions={name: one.partition for name, one in summaries.items()}, random_seed=1)
print(tree.verdict)
# Figure: One tree of the cells: nodes as high as their numbers of cells, coloured by support, the mean Jaccard
# similarity to the most similar cluster of a run.
ax = tree.plot()

# %% [markdown]
# Nodes of few cells and little support are cells that change sides from one resolution to the next.
#
# ## The consensus, and how certain each cell is
#
# The partition of a layer has the smallest mean VI to its 20 runs. Its clusters have the numbers of the comparison.

# %%
summary = summaries[1.0]
summary

# %%
# Figure: Four panels: agreement of runs on each two of 700 cells, sizes of the clusters, 95% ball, and mean
# agreement of each cell with its own and the nearest other cluster.
axes = summary.plot()

# %% [markdown]
# ## Back into the AnnData
#
# `attach` writes columns into `obs`, in place: `consensus` and `consensus_similarity`, a cell's mean share of runs in
# which it is with another cell of its cluster. `uns["consensus"]` has loss, method, numbers and versions. All of it is
# stored by `adata.write_h5ad`. Cells are paired by name, so it does not matter if some were filtered out meanwhile.
#
# With scanpy, the figure is `sc.pl.umap(adata, color=["consensus", "consensus_similarity"])`.

# %%
adata = pc.attach(adata, summary)
adata.obs[["consensus", "consensus_similarity"]].head(3)

# %%
print({name: value for name, value in adata.uns["consensus"].items() if name != "methods"})


# %% tags=["hide-input"]
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


# %%
# Figure: Two UMAPs of the cells: coloured by cluster, and by mean similarity, low between neighbouring clusters.
axes = umap(adata, color=["consensus", "consensus_similarity"])

# %% [markdown]
# Which cells change clusters from run to run, and where do they go?

# %%
unsure = summary.items.to_dataframe().nsmallest(5, "margin")
unsure[["cluster", "similarity", "nearest", "nearest_similarity"]].round(2)

# %% [markdown]
# A low similarity means that the runs disagree on a cell. Whether the cell lies between two types, or the program has
# difficulties, runs cannot say. Nor is a share of runs a probability: all runs can make the same mistake.
#
# ## Noise
#
# HDBSCAN leaves cells out, with the label -1. `noise=-1` says so: in that run, such a cell is together with no other.
# The default loss is then `"ballet"`: it counts pairs, and cells that only one of two partitions calls noise. The
# consensus leaves out cells that most runs leave out.

# %%
trees = pc.as_runs(adata, "hdbscan_*", noise=-1)
dense = pc.summarize(trees, random_seed=1, progressbar=False)
dense

# %%
adata = pc.attach(adata, dense, group="dense")
print(adata.obs["dense_noise"].value_counts())
# Figure: Two UMAPs of the cells: coloured by cluster and by mean similarity, with noise in small grey points.
axes = umap(adata, color=["dense", "dense_similarity"])

# %% [markdown]
# ## Do two programs agree?
#
# Leiden and HDBSCAN as two groups of runs: if groups differ by more than their runs do, the programs find different
# clusters, and one consensus of both would describe neither.

# %%
both = pc.as_runs(adata, ["leiden_1.0_*", "hdbscan_*"], groups="{}_*", noise=-1)
pc.diagnose(both)

# %% [markdown]
# ## For a paper
#
# `methods_text` has the sentences. `summary.to_html("report.html")` writes a report, and `summary.to_csv("tables")` its
# tables. [From scanpy](../from_scanpy.md) has these steps in the words of scanpy, HDBSCAN and BERTopic.

# %%
print(summary.methods_text())
