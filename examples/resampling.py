# %% [markdown]
# # Runs on subsamples: consensus clustering by resampling
#
# Sometimes each run labels only some of the items. Consensus clustering by resampling clusters random subsamples;
# cross-validation leaves out folds; members of a panel come and go. Mark a missing item by -1, NaN or a mask.
# `as_pair_similarity(runs, missing="pairwise")` then divides the number of runs that co-cluster two items by the
# number of runs that hold both.
#
# The items are 1,797 handwritten digits of 8 x 8 pixels. k-means clusters 50 random subsamples of 70% of them, into 15
# clusters. These are more than the ten digits, because people write some digits in several ways.

# %%
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ShuffleSplit
from tutorial import display

import posterior_consensus as pc

digits = load_digits()
runs = np.full((50, len(digits.data)), -1)
for labels, (held, _) in zip(runs, ShuffleSplit(50, train_size=0.7, random_state=1).split(digits.data), strict=True):
    labels[held] = KMeans(15, random_state=1).fit_predict(digits.data[held])
pairs = pc.as_pair_similarity(runs, missing="pairwise")
best = pc.consensus_partition(pairs, loss="pear", random_seed=1)
display(pairs)

# %%
display(best)

# %% [markdown]
# Any loss that needs only similarities can replace PEAR: Binder's with any costs, or the criterion of R's `minVI`. VI
# and credible balls need whole partitions. They are not available here, because no run is a partition of all items.
#
# ## Is it better than one run?
#
# The adjusted Rand index compares a partition with the true digits, which no run uses.

# %%
single = [
    adjusted_rand_score(digits.target, KMeans(15, random_state=seed).fit_predict(digits.data)) for seed in range(5)
]
print(f"one run on all items: {np.mean(single):.3f}, best of five {max(single):.3f}")
print(f"consensus of 50 runs on subsamples: {adjusted_rand_score(digits.target, best.labels):.3f}")

# %% [markdown]
# ## How precise are the similarities?
#
# Each pair is in about half of the runs. The standard error of a similarity comes from batches of successive runs that
# hold the pair. It is 0 for pairs on which all these runs agree.

# %%
errors = pc.diagnostics.similarity_mcse(pairs).values[np.triu_indices(len(digits.data), 1)]
print(
    f"pairs on which runs differ: {np.mean(errors > 0):.0%}, median standard error {np.median(errors[errors > 0]):.3f}"
)

# %% [markdown]
# ## Which digits are doubtful?
#
# `item_uncertainty` gives each digit's mean similarity to its own cluster, and to the nearest other cluster. The margin
# is their difference.

# %%
items = pc.item_uncertainty(pairs, best)
table = items.to_dataframe().assign(digit=digits.target)
display(table.sort_values("margin").head(8))

# %%
ax = pc.plot_psm(pairs, best)

# %% [markdown]
# Blocks off the diagonal are pairs of clusters that some runs separate and other runs join.
#
# ## Pairs that no run holds
#
# With few or small subsamples, some pairs of items are in no run. Their similarity is unknown. The error message counts
# these pairs:

# %%
try:
    pc.as_pair_similarity(runs[:5], missing="pairwise")
except ValueError as error:
    print(error)
