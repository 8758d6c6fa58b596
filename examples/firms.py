# %% [markdown]
# # Did the clustering change, when, and who moved?
#
# Put the partitions of all years in each draw, and call `pc.compare_layers`. Separate summaries of the years cannot say
# whether the partition changed. The clustering of 11 firms changed between 1945 and 1946, when American Steel moved,
# with probability 0.91.
#
# The data are the gross investments of 11 American firms in 1935 to 1954 (Grunfeld 1958), in millions of 1947 dollars,
# as in R's `AER::Grunfeld`. The model clusters the logarithms of each year's investments. Each cluster has a normal
# mean, and the variance is one for all. The prior (Page, Quintana and Dahl 2022,
# [doi:10.1080/10618600.2021.1987255](https://doi.org/10.1080/10618600.2021.1987255)) makes successive partitions
# dependent. In year $t$, each firm stays with probability $\alpha_t$. Firms that stay are clustered among themselves as
# in the year before. The others then join by a Chinese restaurant process.
#
# `examples/sample_firms.py` sampled the posterior in half a minute.

# %%
import pandas as pd
import xarray as xr

import posterior_consensus as pc

idata = pc.load_example("firms")
investment = idata["observed_data"]["investment"].to_pandas()
# Figure: Gross investment of 11 firms from 1935 to 1954 on a logarithmic axis.
ax = investment.plot(logy=True, figsize=(8.4, 4.5), xticks=range(1935, 1955, 3), colormap="tab20")
ax.set(ylabel="gross investment (millions of 1947 dollars)")
_ = ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)

# %% [markdown]
# `pc.as_layers` reads labels with one more dimension than draws and items.

# %%
layers = pc.as_layers(idata, "z", layer_dim="year")
layers

# %% [markdown]
# ## Do the chains agree?
#
# `pc.diagnose` takes all layers at once. Its scalar summaries include the distances between successive years.

# %%
print(pc.diagnose(layers).verdict)

# %% [markdown]
# ## The partition of each year
#
# `compare_layers` finds the partition of each year, and compares each two years in the same draw. Under the variation
# of information (VI), separate searches [lose nothing](../background/layers.md). Clusters of successive years have one
# name if they are expected to have many firms in common.

# %%
comparison = pc.compare_layers(layers, progressbar=False)
partitions = comparison.partitions
partitions.labels.to_pandas().T.rename_axis(columns=None)

# %%
# Figure: Flows of firms between the clusters of successive years; most firms stay, and most changes are from 1945 on.
axes = comparison.plot()

# %% [markdown]
# `pc.summarize(layers)` would add a summary of each year, and a report.
#
# ## When did the clustering change?
#
# The partitions of two years can differ in most draws because both are uncertain. The column `separation` is how much
# farther apart two draws of different years are than two draws of one year. `p_largest` is the probability that a
# step has the largest distance in the same draw.

# %%
steps = comparison.steps.to_dataframe().set_index(["layer", "other_layer"])
steps[["expected_loss", "mcse", "separation", "separation_mcse", "p_equal", "p_largest"]].round(3)

# %%
print(comparison.verdict)

# %% [markdown]
# Between 1948 and 1949 the separation is the second largest, and this step has the largest distance with probability
# 0.18. But no firm's move is clearly more than three times as probable as no move. The verdict requires that.
#
# ## What separate summaries miss
#
# The column `independent` has the expected distance between a draw of one year and another draw of the next, as if the
# years had separate posteriors. `difference` is the expected distance less that.

# %%
steps[["expected_loss", "independent", "difference", "difference_mcse"]].round(3)

# %% [markdown]
# Between 1943 and 1944 the distance would be 0.36 bits, but in the same draw it is 0.095. It is uncertain where
# Atlantic Refining belongs, but a draw typically has it in the same place in both years. This uncertainty is no change.
#
# ## Who moved?
#
# The clusters of each draw are matched with those of the year's partition, and a firm moves if its cluster has another
# name in the next year. Here are the probabilities of a move for the two largest changes and two others.

# %%
moved = comparison.overlaps["moved"].to_pandas().T
moved[["1944 to 1945", "1945 to 1946", "1948 to 1949", "1953 to 1954"]].round(2)

# %% [markdown]
# In 1946, American Steel joins Diamond Match, which stays but gains a co-member (overlap 0.54). In 1949, IBM moves in
# half of the draws. The table of labels also moves firms that most draws leave (Atlantic Refining in 1945, 0.12;
# Chrysler in 1946, 0.39; US Steel in 1954, 0.32). Each year's partition is a best guess by itself, and the label of an
# undecided firm changes as soon as its probabilities cross. The verdict names only clear moves. The overlap of a firm's
# clusters in two successive years is 1 in a draw in which the firm keeps all its co-members and gains none.

# %%
overlaps = comparison.overlaps["overlap"].to_pandas().T
overlaps[["1945 to 1946", "1948 to 1949"]].round(2)

# %% [markdown]
# Triangles mark clear moves:

# %%
# Figure: A row for each year with the cluster of each of the 11 firms, and a triangle at clear moves.
axes = pc.plot_layer_items(comparison)

# %% [markdown]
# How many firms go where?

# %%
flows = comparison.flow_table().set_index(["before", "after"])
flows.loc[(1948, 1949)].query("expected > 0.05").round(2)

# %% [markdown]
# The probability of an event that involves several years is a share of the joint draws.

# %%
z = idata["posterior"]["z"]


def together(year, *firms):
    """Whether these firms are in one cluster in that year, by draw."""
    return (z.sel(year=year, firm=list(firms)) == z.sel(year=year, firm=firms[0])).all("firm")


events = {
    "IBM with Union Oil in 1945, with General Electric and Chrysler in 1954": (
        together(1945, "IBM", "Union Oil") & together(1954, "IBM", "General Electric", "Chrysler")
    ),
    "Diamond Match and American Steel apart in 1945, together in 1946": (
        ~together(1945, "Diamond Match", "American Steel") & together(1946, "Diamond Match", "American Steel")
    ),
    "General Motors and US Steel together in 1952, apart in 1954": (
        together(1952, "General Motors", "US Steel") & ~together(1954, "General Motors", "US Steel")
    ),
}
pd.Series({event: float(drawn.mean()) for event, drawn in events.items()}, name="probability").round(2)

# %% [markdown]
# Since when is IBM with General Electric, until 1954?

# %%
apart = xr.concat([~together(year, "IBM", "General Electric") for year in layers], pd.Index(list(layers), name="year"))
since = apart.sel(year=slice(None, None, -1)).idxmax("year") + 1  # 1955 if they are apart in 1954
since.to_series().value_counts(normalize=True, sort=False).sort_index().rename("probability").round(3)

# %% [markdown]
# ## What the draws do not show
#
# - **Which change is the largest.** More draws would not settle it: the Monte Carlo error of its probability is small.
# - **What the model leaves out.** It has one variance for all firms. American Steel varies most from year to year. With
#   a variance of its own, its fall in 1946 might count as chance.
# - **How many groups there are.** Investments are a continuum, of which clusters are sections. Their width depends on
#   the variance within clusters, and firms near an edge move easily.
