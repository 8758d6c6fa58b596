# %% [markdown]
# # From runs of scanpy's Leiden to one clustering
#
# Leiden, HDBSCAN and topic models find another clustering with another seed. Which one should a paper report, which
# clusters and cells depend on the run, at which resolution do runs agree, and which setting matters most?
#
# ![UMAPs of the cells, by cluster, mean similarity and share of the runs.](../images/umap.png)
#
# The data are 700 blood cells that scanpy ships (Zheng et al. 2017). The page needs `pip install scanpy igraph`. With
# data of your own, begin with an AnnData that has principal components and a UMAP.

# %%
import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc

import posterior_consensus as pc

adata = sc.datasets.pbmc68k_reduced()
adata.obs_names.name = "cell"


def leiden(adata, resolution, seed, name):
    sc.tl.leiden(adata, resolution, random_state=seed, key_added=name, flavor="igraph", n_iterations=2, directed=False)


sc.pp.neighbors(adata, n_neighbors=15)
for resolution in (0.4, 0.6, 0.8, 1.0, 1.5, 2.0):
    for seed in range(20):
        leiden(adata, resolution, seed, f"leiden_15_{resolution}_{seed}")
adata.obs.iloc[:3, -3:]

# %% [markdown]
# ## Read the runs
#
# `pc.as_runs` takes the columns whose names match a pattern. `groups` says what runs differ in besides the seed: what
# stands in the place of `{}` in their names, here the resolution. Labels of different runs have nothing to do with each
# other.

# %%
runs = pc.as_runs(adata, "leiden_15_*", groups="leiden_15_{}_*")
runs

# %% [markdown]
# ## Which resolution?
#
# `pc.as_layers` makes a layer of each resolution, and `pc.summarize` compares and summarizes them. The comparison says
# how far two runs of one resolution are apart: `distance` is the mean variation of information (VI) between two runs,
# `chance` what it would be if the labels of one were shuffled. `stability` is 1 if all runs are equal, and 0 if they
# agree no more than by chance.

# %%
layers = pc.as_layers(runs, layer_dim="resolution")
summaries = pc.summarize(layers, random_seed=1, progressbar=False)
print(summaries.comparison.verdict)
stability = summaries.comparison.to_dataframe()
stability[["n_clusters", "distance", "error", "chance", "stability", "stability_error"]].round(2)

# %%
# Figure: Stability and number of clusters at each resolution, and flows of cells between the consensus partitions
# of successive resolutions.
axes = summaries.plot()

# %% [markdown]
# The shortlist is 0.4, 0.6 and 2.0, the local peaks of stability. Runs disagree most at 1.0, where some find nine
# clusters and others ten. The errors of stability allow for a partition that none of the 20 runs found. Stability is
# not correctness. At 0.4 all runs find the same clusters, but there need not be as many types of cells.
#
# ## Which clusters hold?
#
# At 0.4 and 0.6, all. We look at 1.0, scanpy's default and the least stable: clusters 2 and 8 are one in 30% of the
# runs, and 0 is split in 40%; the others are in every run. A cluster has the same number at all resolutions.

# %%
summary = summaries[1.0]
summary.clusters.to_dataframe()[["size", "found", "jaccard", "joined_with", "joined", "split"]].round(2)

# %%
# Figure: Share of the runs that have each cluster: 60% to 70% for three of them, all for the others.
ax = summary.clusters.plot()

# %% [markdown]
# ## One tree
#
# The consensus partitions of successive resolutions are not quite nested: a few cells change sides. `pc.consensus_tree`
# searches for partitions of which each refines the coarser one, such that the sum of expected losses is least.

# %%
found = {name: one.partition for name, one in summaries.items()}
tree = pc.consensus_tree(layers, partitions=found, random_seed=1, progressbar=False)
print(tree.verdict)
# Figure: One tree of the cells: nodes as high as their numbers of cells, coloured by support, the mean Jaccard
# similarity to the most similar cluster of a run.
ax = tree.plot()

# %% [markdown]
# Nodes, numbered anew, of few cells and little support are cells that change sides from one resolution to the next.
#
# ## The consensus, and how certain each cell is
#
# The partition of a layer has the smallest mean VI to its 20 runs.

# %%
summary

# %%
# Figure: Four panels: agreement of runs on each two of 700 cells, numbers of clusters, 95% ball, and mean
# agreement of each cell with its own and the nearest other cluster.
axes = summary.plot()

# %% [markdown]
# The runs are of two kinds (60% and 40%): cluster 0 is whole or split. Show both (`pc.particles`), or report 0.4 or
# 0.6.
#
# ## Back into the AnnData
#
# `pc.attach` writes columns into `obs`, in place, for each resolution: `consensus_1.0`, `consensus_1.0_similarity`, a
# cell's mean share of runs in which it is with another cell of its cluster, and `consensus_1.0_found`, the share of
# runs that have its cluster.


# %%
def plot_umaps(columns):
    """Colour UMAPs by columns, with letters that can be read."""
    with plt.rc_context({"figure.figsize": (3.6, 3.2), "font.size": 14}):
        return sc.pl.umap(adata, color=columns, legend_loc="on data", frameon=False, show=False)


adata = pc.attach(adata, summaries)
# Figure: Three UMAPs of the cells: coloured by cluster, by mean similarity, low in the cluster that is split,
# and by the share of the runs that have the cluster.
axes = plot_umaps(["consensus_1.0", "consensus_1.0_similarity", "consensus_1.0_found"])

# %% [markdown]
# Which cells change clusters from run to run, and where do they go?

# %%
unsure = summary.items.to_dataframe().nsmallest(5, "margin")
unsure[["cluster", "similarity", "nearest", "nearest_similarity"]].round(2)

# %% [markdown]
# All five move between clusters 1 and 7, which are in every run: a cluster counts as found although some cells change.
# A low similarity means that the runs disagree on a cell. Whether the cell lies between two types, or the program has
# difficulties, runs cannot say. Nor is a share of runs a probability: all runs can make the same mistake.
#
# `uns["consensus"]` has losses, numbers and versions, and all of the results. So the summaries come back from the file,
# whose columns have the runs.

# %%
adata.write_h5ad("cells.h5ad")
stored = sc.read_h5ad("cells.h5ad")
again = pc.as_layers(pc.as_runs(stored, "leiden_15_*", groups="leiden_15_{}_*"), layer_dim="resolution")
again = pc.results.LayersSummary.from_datatree(stored.uns["consensus"], again)
print(again[1.0].n_clusters, "clusters,", pc.partition_loss(again[1.0], summary), "bits from what was stored")

# %% [markdown]
# ## Which setting matters most?
#
# The number of neighbours varies, too. `pc.compare_factors` reads both settings in the names of the columns, and
# compares runs that differ in one of them alone.

# %%
for n_neighbors in (10, 30):
    sc.pp.neighbors(adata, n_neighbors=n_neighbors)
    for resolution in (0.4, 0.6, 0.8, 1.0, 1.5, 2.0):
        for seed in range(5):
            leiden(adata, resolution, seed, f"leiden_{n_neighbors}_{resolution}_{seed}")
factors = pc.compare_factors(pc.as_runs(adata, "leiden_*"), "leiden_{n_neighbors}_{resolution}_*")
factors

# %%
# Figure: Mean VI between two runs that differ in the number of neighbours or in the resolution alone, and between two
# runs of one setting.
ax = factors.plot()

# %% [markdown]
# Over these values, the resolution matters most, and the seed least.
#
# ## Does it hold on fewer cells?
#
# Twenty runs on 80% of the cells each, with neighbours of their own. Cells that a run did not have are missing: each
# run counts by the cells that it had.

# %%
rng = np.random.default_rng(1)
parts = {}
for seed in range(20):
    some = adata[rng.permutation(adata.n_obs)[: adata.n_obs * 8 // 10]].copy()
    sc.pp.neighbors(some, n_neighbors=15)
    leiden(some, 1.0, seed, "leiden")
    parts[f"part {seed}"] = some.obs["leiden"]
of_parts = pc.as_runs(parts, missing=np.nan)
on_parts = pc.summarize(of_parts, random_seed=1, progressbar=False)
on_parts

# %%
matched = pc.align_partitions({"all": summary.partition, "parts": on_parts.partition})
adata = pc.attach(pc.attach(adata, on_parts, group="parts"), matched, group="on")
# Figure: Three UMAPs of the cells: coloured by the consensus of runs on all cells, by that of runs on parts of the
# cells with the same names, and by mean similarity of the latter.
axes = plot_umaps(["on_all", "on_parts", "parts_similarity"])

# %% [markdown]
# Clusters 2 and 8 are separate in 70% of the runs on all cells, but in 30% of those on parts, whose consensus joins
# them.
#
# ## Noise
#
# HDBSCAN leaves cells out as *noise*, with the label -1. `noise=-1` says so: in that run, such a cell is together with
# no other. The default loss is then `"ballet"`: it counts pairs, and cells that only one of two partitions calls noise.
# The consensus leaves out cells that most runs leave out. These runs are of 20 UMAPs, each from another seed.

# %%
adata.obs = adata.obs.join(pc.load_example("cells").filter(like="hdbscan_"))
by_density = pc.summarize(pc.as_runs(adata, "hdbscan_*", noise=-1), random_seed=1, progressbar=False)
by_density

# %% [markdown]
# Do not report the clusters that are found in 0% of the runs.

# %%
adata = pc.attach(adata, by_density, group="dense")
# Figure: Two UMAPs of the cells: coloured by cluster and by mean similarity, with noise in grey.
axes = plot_umaps(["dense", "dense_similarity"])

# %% [markdown]
# ## Do two programs agree?
#
# Leiden and HDBSCAN as two groups of runs: if groups differ by more than their runs do, the programs find different
# clusters, and one consensus of both would describe neither.

# %%
both = pc.as_runs(adata, ["leiden_15_1.0_*", "hdbscan_*"], groups="{}_*", noise=-1)
pc.diagnose(both)

# %% [markdown]
# ## For a paper
#
# `methods_text` has the sentences, here for 0.6 of the shortlist. `summaries.to_html("report.html")` writes a report
# on all resolutions, and `summary.to_csv("tables")` the tables of one.

# %%
print(summaries[0.6].methods_text())
