# %% [markdown]
# # Do my draws have two modes, and how far away is another model?
#
# Yes: two, of weights 0.59 and 0.41; report both partitions. `pc.particles` finds them. `pc.compare_posteriors` tests
# whether another model's posterior differs, measures by how much, and names the items that differ most. Convergence
# diagnostics, the credible ball and the similarity matrix do not show two modes.
#
# The data are two traits of 96 plants from four places, and simulated. A mixture of three normals sorts them into
# species. The plants of the valley lie between coast and mountains, and belong to either species, all of them jointly.

# %%
import matplotlib.pyplot as plt
import numpy as np

import posterior_consensus as pc

tree = pc.load_example("two_answers")
draws = pc.as_partition_draws(tree)
best = pc.consensus_partition(draws, random_seed=1, progressbar=False)
best

# %%
traits = tree["observed_data"]["traits"]
valley = traits[traits["plant"].str.startswith("valley").values]
# Figure: Leaf length and flower width of 96 plants, coloured by three clusters; two of them touch. Rings mark the
# plants of the valley, which lie between the others of these two.
ax = pc.plot_data(traits, best, items=pc.item_uncertainty(draws, best))
ax.scatter(*valley.values.T, s=120, facecolors="none", edgecolors="grey")
_ = ax.text(2, 0.6, "valley", ha="center")

# %% [markdown]
# ## What does not show it
#
# The chains agree. The credible ball is large, because it is centred on one mode and reaches the other.

# %%
print(pc.diagnose(draws, best).verdict)
ball = pc.credible_ball(draws, best)
print(f"radius of the 95% ball: {float(ball.radius):.2f} bits")

# %% [markdown]
# The similarity matrix shows that the valley is uncertain. It does not show whether its plants switch one by one or
# jointly.

# %%
# Figure: Similarity matrix of 96 plants: part of cluster 0 is co-clustered now with the rest of it, now with
# cluster 1.
ax = pc.plot_psm(draws, best)

# %% [markdown]
# ## What does: distances, and particles
#
# The distances of the draws from the consensus have two peaks. `particles` finds the weighted partitions nearest to the
# posterior, one for each mode with a valley between it and the others.

# %%
# Figure: Histogram of the distances of draws to the consensus: two humps, below 0.8 bits and above.
ball.distances.plot.hist(bins=np.arange(0, 1.3, 0.2))
_ = plt.ylabel("draws")

# %%
found = pc.particles(draws, random_seed=1, progressbar=False)
print(found.verdict)

# %% [markdown]
# Every chain visits both modes, in these shares, and switches often; else the weights would be meaningless.

# %%
visits = found.by_chain.to_pandas().round(2)
visits["switches"] = found.assignment.groupby("chain").map(lambda one: (one.diff("sample") != 0).sum())
visits

# %%
# Figure: The partitions of two modes, of weights 0.59 and 0.41, as strips; plants at the border of the
# first two clusters change co-members.
axes = found.plot()

# %% [markdown]
# How many plants of each place are in another cluster (`moved`), and the mean contribution of a plant to the distance
# between the two partitions (`bits`). Plants that stay contribute because their co-members change.

# %%
first, second = pc.align_partitions({"first": found.partitions[0], "second": found.partitions[1]}).labels
plants = found.contributions(0, 1).to_dataframe("bits")
plants["moved"] = (first != second).values
plants.groupby(plants.index.str.split().str[0]).agg({"moved": "sum", "bits": "mean"}).round(3)

# %% [markdown]
# On the map, few draws lie between the modes.

# %%
# Figure: Map of the draws: dense at the partition of each mode, sparse between them.
ax = pc.plot_draws_map(draws, particles=found)

# %% [markdown]
# ## Within one mode
#
# `region` gives the draws of a mode, for any other function. The least certain plant is in its cluster
# with probability 0.34 over all draws, and 0.57 within the mode.

# %%
within = found.region(0)
for name, some in {"all draws": draws, "the mode": within}.items():
    print(f"{name}: {float(pc.membership(some, found.partitions[0]).own.min()):.2f}")

# %% [markdown]
# ## Another model
#
# The same model with four species was sampled, too. It has no second mode, as far as the draws show. The plants that
# differ most are of the valley; `left` is how many co-members they lose.

# %%
four = pc.as_partition_draws(tree, group="four_species")
names = "three species", "four species"
comparison = pc.compare_posteriors(draws, four, names=names, random_seed=1, progressbar=False)
print(comparison.verdict)
print(pc.particles(four, random_seed=1, progressbar=False).verdict)
comparison.to_dataframe()[["left"]].head(3).round(1)

# %%
# Figure: Difference of two similarity matrices, large between the first two clusters, and the plants whose
# probabilities differ most.
axes = comparison.plot(best)

# %% [markdown]
# ## What to report
#
# "The draws have two modes, of weights 0.59 and 0.41 (MCSE 0.013). They differ in 19 plants, 14 of them of the valley."
# Show both partitions, and add that the rule for modes [has no known error
# rate](../background/modes.md#the-rule-for-separated-modes).
