# %% [markdown]
# # When can my own sampler stop?
#
# Stop when the partition's effective sample size is 400, a hundred for each of four chains, and `pc.diagnose` says that
# the chains agree; here after 500 sweeps. The sampler passes each draw to a `pc.PartitionAccumulator`, and every
# function takes the draws so far. This page's sampler clusters 30 values around three centres, two of them close to
# each other:

# %%
import matplotlib.pyplot as plt
import numpy as np

import posterior_consensus as pc

rng = np.random.default_rng(1)
y = np.concatenate([rng.normal(centre, 1.0, 10) for centre in (-6.0, 0.0, 3.5)])
# Figure: Histogram of 30 values: ten near -6, the others around 0 and 3.5.
fig, ax = plt.subplots(figsize=(6, 2))
ax.hist(y, bins=np.arange(-9, 7, 0.5))
_ = ax.set(xlabel="value", ylabel="values")

# %% [markdown]
# The model is a Dirichlet process mixture of normals with variance 1, whose means have the prior N(0, 25) and are
# integrated out. One sweep removes each item from its cluster, and puts it into one of the clusters or a new one.

# %%
CONCENTRATION, PRIOR_VARIANCE = 0.5, 25.0


def sweep(labels, rng):
    """Draw the cluster of each item in turn, given those of all others (Neal 2000, algorithm 3)."""
    for i in rng.permutation(y.size):
        labels[i] = -1
        labels[labels >= 0] = np.unique(labels[labels >= 0], return_inverse=True)[1]
        others = labels >= 0
        sizes = np.append(np.bincount(labels[others]), 0)
        sums = np.append(np.bincount(labels[others], weights=y[others]), 0.0)
        variance = 1.0 / (1.0 / PRIOR_VARIANCE + sizes)
        prior = np.where(sizes > 0, sizes, CONCENTRATION)
        log_density = -0.5 * (np.log(1.0 + variance) + (y[i] - variance * sums) ** 2 / (1.0 + variance))
        weights = prior * np.exp(log_density - log_density.max())
        labels[i] = rng.choice(sizes.size, p=weights / weights.sum())


# %% [markdown]
# ## Run until it is enough
#
# The chains start from partitions with one to 30 clusters. After every 100 sweeps, `diagnose` takes the draws so far,
# without their first fifth.

# %%
chains = [np.random.default_rng(seed).integers(most, size=y.size) for seed, most in enumerate((1, 3, 10, 30))]
generators = np.random.default_rng(2).spawn(4)
kept = pc.PartitionAccumulator()

for n_sweeps in range(1, 2001):
    for chain, labels in enumerate(chains):
        sweep(labels, generators[chain])
        kept.add(labels, chain)
    if n_sweeps % 100 == 0:
        diagnosis = pc.diagnose(kept.draws().isel(draw=slice(n_sweeps // 5, None)))
        print(n_sweeps, "sweeps:", round(diagnosis.partition_ess), "effective draws,", diagnosis.status)
        if diagnosis.partition_ess >= 400 and diagnosis.status == "agree":
            break

# %% [markdown]
# The partition had more than 400 effective draws after 300 sweeps. But `status` also requires that no scalar summary
# has an R-hat above 1.01, which takes longer. A stopping rule stops when the draws look good, so require both.

# %%
draws = kept.draws().isel(draw=slice(n_sweeps // 5, None))
best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
# Figure: Similarity matrix of the 30 values, with three clusters outlined; two values are between the last two.
ax = pc.plot_psm(draws, best)

# %% [markdown]
# ## If the process may be killed
#
# With a path, the accumulator writes every hundred draws of a chain to a file. The same call opens the store
# again, and continues from its draws.

# %%
import tempfile

with tempfile.TemporaryDirectory() as folder:
    with pc.PartitionAccumulator(f"{folder}/draws", batch_size=100) as stored:
        stored.add(draws.labels[:250])
    with pc.PartitionAccumulator(f"{folder}/draws") as again:
        print(again)
