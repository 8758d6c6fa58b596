# %% [markdown]
# # My runs hold different items: how do I combine them?
#
# Mark the missing items by a label of your choice, and call `as_runs(runs, missing=-1)`. The similarity of two items is
# then the number of runs that co-cluster them, divided by the number of runs that hold both. Random subsamples, folds
# of a cross-validation, and panels whose members come and go are such runs.
#
# The items are 900 handwritten digits of 8 x 8 pixels. k-means clusters 30 random subsamples of 70% of them into 15
# clusters, because people write some digits in several ways.

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
pairs = pc.as_runs(runs, missing=-1)
best = pc.consensus_partition(pairs, loss="pear", random_seed=1, progressbar=False)
best

# %% [markdown]
# The default, VI, and credible balls need whole partitions, which these runs are not. PEAR is the adjusted Rand index
# of a partition with a run, but each pair's 0 or 1 in the run is replaced by its similarity, the mean over runs. The
# loss is one minus PEAR. `"vi_lower_bound"`, in place of VI, and Binder's loss need only similarities, too. Binder's
# loss gives more clusters here:

# %%
binder = pc.consensus_partition(pairs, loss="binder", random_seed=1, progressbar=False)
print(f"PEAR {best.n_clusters} clusters, Binder's loss {binder.n_clusters}")

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
# The margin is the mean similarity to the own cluster minus that to the nearest other cluster; the table begins with
# the smallest margins. A summary, which needs complete runs, would go by the share of runs in which an item is in its
# cluster.

# %%
table = pc.item_uncertainty(pairs, best).to_dataframe().assign(digit=truth)
table.sort_values("margin").head(5)

# %%
# Figure: Agreement of the runs on each two of 900 digits, with 18 clusters outlined.
ax = pc.plot_psm(pairs, best)

# %% [markdown]
# Blocks off the diagonal are pairs of clusters that some runs separate and others join. The standard error of a
# similarity is that of a share of independent runs, those that hold the pair.

# %%
upper = np.triu_indices(len(pixels), 1)
similarity, errors = pairs.values[upper], pc.diagnostics.similarity_mcse(pairs).values[upper]
differ = (similarity > 0) & (similarity < 1)
print(f"pairs on which runs differ: {differ.mean():.0%}, median standard error {np.median(errors[differ]):.3f}")

# %% [markdown]
# With few or small subsamples, no run holds some pairs. Their similarity is unknown:

# %%
try:
    pc.as_runs(runs[:5], missing=-1)
except ValueError as error:
    print(error)

# %% [markdown]
# Which images stay in one cluster? `stable_components` finds groups that are linked, directly or in a chain, by
# similarities of at least 0.9.

# %%
pc.stable_components(pairs, 0.9)

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
# other function. At threshold 0.9, `stable_components` again links items by similarities of at least 0.9. Items that
# all draws co-cluster are in one cluster of some optimal partition, under Binder's loss, VI and the misclassification
# distance.

# %%
pc.stable_components(found.column_draws, 0.9)

# %% [markdown]
# `method="sccc"`, stable component consensus clustering, is made for few partitions, such as these ten. Large
# components that differ in many partitions are the seeds of clusters, and the others join the nearest seed. Most
# clusters of pixels are regions of the image, although the method does not know which pixels are neighbours.

# %%
regions = pc.consensus_partition(found.column_draws, loss="binder", method="sccc", n_clusters=16, progressbar=False)
print(f"stability {regions.info.stability:.2f}")

# %%
# Figure: A grid of the 64 pixels, coloured by cluster; clusters are connected regions of the image.
image = plt.matshow(regions.labels.values.reshape(8, 8), cmap="tab20")
