# %% [markdown]
# # My runs hold different items: how do I combine them?
#
# Mark the missing items by a label of your choice, and call `pc.as_runs(runs, missing=-1)`. Here k-means clusters 30
# random subsamples of 70% of 900 handwritten digits, of 8 x 8 pixels, into 15 clusters: people write some digits in
# several ways.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ShuffleSplit

import posterior_consensus as pc

digits = load_digits()
pixels, truth = digits.data[:900], digits.target[:900]
runs = np.full((30, len(pixels)), -1)
for labels, (held, _) in zip(runs, ShuffleSplit(30, train_size=0.7, random_state=1).split(pixels), strict=True):
    labels[held] = KMeans(15, random_state=1).fit_predict(pixels[held])
subsamples = pc.as_runs(runs, missing=-1)
best = pc.consensus_partition(subsamples, loss="pear", random_seed=1, progressbar=False)
# Figure: Agreement of the runs on each two of 900 digits, with 18 clusters outlined.
ax = pc.plot_psm(subsamples, best)

# %% [markdown]
# Blocks off the diagonal are pairs of clusters that some runs separate and others join.
#
# ## What a loss is if items are missing
#
# The loss of a partition and a run is that of the items that the run has; the distance of two runs is that of the items
# that both have. A bound of the loss is known for complete runs only.

# %%
summary = pc.summarize(subsamples, random_seed=1, progressbar=False)
summary

# %% [markdown]
# Losses of similarities take the share of the runs with both items that co-cluster them: PEAR is the adjusted Rand
# index of a partition with a run, but each pair's 0 or 1 in the run is replaced by its similarity, and the loss is one
# minus PEAR. Losses differ in the number of clusters here:

# %%
binder = pc.consensus_partition(subsamples, loss="binder", random_seed=1, progressbar=False)
print(f"VI {summary.n_clusters} clusters, PEAR {best.n_clusters}, Binder's loss {binder.n_clusters}")

# %% [markdown]
# ## Is it better than one run?
#
# The adjusted Rand index compares a partition with the true digits, which no run uses.

# %%
single = [adjusted_rand_score(truth, KMeans(15, random_state=seed).fit_predict(pixels)) for seed in range(5)]
print(f"one run on all items: {np.mean(single):.3f}, best of five {max(single):.3f}")
print(f"consensus of 30 runs on subsamples: {adjusted_rand_score(truth, best.labels):.3f}")

# %% [markdown]
# ## Which digits are doubtful?
#
# The margin is an item's mean similarity to its own cluster, minus that to the nearest other cluster. Each time that
# the item is in a run with a member of the cluster counts once. The table begins with the smallest margins. The nearest
# clusters here, 13 and 17, have three images and one.

# %%
table = pc.item_uncertainty(subsamples, best).to_dataframe().assign(digit=truth)
columns = ["digit", "cluster", "similarity", "nearest", "nearest_similarity", "margin"]
table.sort_values("margin")[columns].head(5).round(2)

# %% [markdown]
# The standard error of a similarity is that of a share of the runs with the pair.

# %%
upper = np.triu_indices(len(pixels), 1)
similarity, errors = subsamples.similarity()[upper], pc.diagnostics.similarity_mcse(subsamples).values[upper]
differ = (similarity > 0) & (similarity < 1)
print(f"pairs on which runs differ: {differ.mean():.0%}, median standard error {np.median(errors[differ]):.3f}")

# %% [markdown]
# With few or small subsamples, no run holds some pairs. A summary counts them. Their similarity is unknown, and
# functions of similarities say so:

# %%
few = pc.as_runs(runs[:8], missing=-1)
print(f"{few.met.never} of {few.met.pairs:,} pairs are in no run together")
try:
    few.similarity()
except ValueError as error:
    print(error)

# %% [markdown]
# Which images are linked step by step? `pc.stable_components` finds groups that are linked, directly or in a chain, by
# similarities of at least 0.9. The ends of a chain need not be similar: the largest group has images that no run joins,
# and mixes digits.

# %%
chained = pc.stable_components(subsamples, 0.9)
chained

# %%
first = chained.labels.values == 0
print(f"smallest similarity {subsamples.similarity()[np.ix_(first, first)].min():.2f}")
print("images of the digits 0 to 9:", *np.bincount(truth[first], minlength=10))

# %% [markdown]
# ## Rows and columns that explain each other
#
# `cocluster` takes a table of counts, such as words in documents. It makes several clusterings of rows and of columns,
# each pair with high mutual information, and then increases their agreement. Here the rows are digits, the columns
# pixels, and the counts ink.

# %%
found = pc.agreement.cocluster(pixels[:400], n_row_clusters=10, n_column_clusters=16, random_seed=1, progressbar=False)
found

# %% [markdown]
# Round 0 is ten pairs of clusterings, each optimized separately. `row_draws` and `column_draws` are draws for every
# other function.

# %%
pc.stable_components(found.column_draws, 0.9)

# %% [markdown]
# Groups of items that all draws co-cluster are *stable components*. `method="sccc"`, stable component consensus
# clustering, is made for few partitions, such as these ten. Large components that differ in many partitions are the
# seeds of clusters, and the others join the nearest seed. Ten of these 16 clusters of pixels are connected in the
# image, although the method does not know which are neighbours.

# %%
regions = pc.consensus_partition(found.column_draws, loss="binder", method="sccc", n_clusters=16, progressbar=False)
print(f"stability {regions.info.stability:.2f}")

# %%
# Figure: A grid of the 64 pixels, coloured by cluster; ten of 16 clusters are connected.
image = plt.matshow(regions.labels.values.reshape(8, 8), cmap="tab20")
_ = image.axes.set(xlabel="column of pixels", ylabel="row of pixels")
