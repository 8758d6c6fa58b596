# %% [markdown]
# # Runs on subsamples: consensus clustering by resampling
#
# Not every set of labels holds every item. Consensus clustering by resampling clusters random subsamples;
# cross-validation leaves out folds; panels have members who come and go. Mark a missing item by -1, NaN or a mask.
# `as_pair_similarity(draws, missing="pairwise")` then divides the number of draws that co-cluster two items by the
# number of draws that hold both.
#
# The items are 1,797 handwritten digits of 8 x 8 pixels. k-means clusters 50 random subsamples of 70% of them, into
# more clusters than there are digits, because people write some digits in several ways.

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
# Those are the ten lines. Any loss of pairs works in place of PEAR: Binder's with any costs, or the criterion of R's
# `minVI`. What needs whole partitions, such as VI or a credible ball, does not, as no draw is a partition of all items.
#
# ## Is it better than one run?
#
# The adjusted Rand index compares a partition with the true digits, which no run has seen.

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
# `item_uncertainty` compares each digit's mean similarity to its own cluster with that to the nearest other one.

# %%
items = pc.item_uncertainty(pairs, best)
table = items.to_dataframe().assign(digit=digits.target)
display(table.sort_values("margin").head(8))

# %%
ax = pc.plot_psm(pairs, best)

# %% [markdown]
# The blocks off the diagonal are ways to write a digit that some runs separate and others unite.
#
# ## Pairs that no run holds
#
# Small subsamples, or few, leave pairs without any run. Their similarity is unknown, and the error counts them:

# %%
try:
    pc.as_pair_similarity(runs[:5], missing="pairwise")
except ValueError as error:
    print(error)
