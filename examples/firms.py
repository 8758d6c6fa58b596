# %% [markdown]
# # Did the clustering change, when, and who moved?
#
# A draw can hold several partitions of the same items, such as one for each year. Each year could be summarized by
# itself. But whether the partition changed from one year to the next is a question about two partitions in the same
# draw.
#
# The data are the gross investments of 11 American firms in 1935 to 1954 (Grunfeld 1958), in millions of 1947 dollars.
# `examples/data/grunfeld.csv` has the values of R's `AER::Grunfeld`. Which firms invest alike? The model clusters the
# logarithms of each year's investments. In each year a cluster has a normal mean of its own; the variance is one for
# all. The prior (Page, Quintana and Dahl 2022,
# [doi:10.1080/10618600.2021.1987255](https://doi.org/10.1080/10618600.2021.1987255)) makes successive partitions
# dependent. In year $t$, each firm stays with probability $\alpha_t$. Firms that stay are clustered among themselves as
# in the year before. The others then join by a Chinese restaurant process.
#
# `examples/sample_firms.py` sampled the posterior in half a minute: four chains of 1,000 draws with 20 partitions each.

# %%
import numpy as np
import pandas as pd
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "firms.nc", engine="h5netcdf") as file:
    idata = file.load()
investment = idata["observed_data"]["investment"].to_pandas()
ax = investment.plot(logy=True, figsize=(8.4, 4.5), xticks=range(1935, 1955, 3), colormap="tab20")
ax.set(ylabel="gross investment (millions of 1947 dollars)")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)

# %% [markdown]
# `as_layers` reads labels with one more dimension than draws and items. Every other function takes a layer as the
# draws of a single partition. Labels of different years need not have the same meaning.

# %%
layers = pc.as_layers(idata, "z", layer_dim="year")
display(layers)

# %% [markdown]
# ## Do the chains agree?
#
# `diagnose` takes all layers at once. It summarizes the partition of all firms in all years, as usual, and also the
# distance of each year from its central draw, and the distances between successive years:

# %%
diagnosis = pc.diagnose(layers)
print(diagnosis.verdict)
between = diagnosis.summaries.to_dataframe().filter(like="distance from", axis="index")
display(between[["mean", "mcse", "rhat", "ess_bulk"]].round(3))

# %% [markdown]
# ## The partition of each year
#
# `compare_layers` finds the partition of each year, and compares the partitions of each two years in the same draw.
# Under VI, the best partition of all years together is made of the best partitions of each year, so separate searches
# lose nothing ([](../background/layers.md)). Clusters of successive years have the same name if they are expected to
# have many firms in common.

# %%
comparison = pc.compare_layers(layers)
partitions = comparison.partitions
display(partitions.labels.to_pandas().T.rename_axis(columns=None))

# %%
ax = pc.plot_layers(comparison)

# %% [markdown]
# Cluster 0 has the largest investors, General Motors and US Steel, until they part in 1954. Atlantic Refining leaves
# General Electric and Chrysler in 1945, and IBM joins them in 1949. Diamond Match and American Steel, the smallest, are
# one cluster from 1946 on. How probable is each of these changes? `pc.summarize(layers)` would add a summary of each
# year, and a report of them all.
#
# ## When did the clustering change?
#
# These are the distances between successive years, with the probability that the partitions differ, and that no other
# change is larger:

# %%
steps = comparison.steps.to_dataframe().set_index(["layer", "other_layer"])
steps["p_changed"] = 1 - steps["p_equal"]
display(steps[["expected_loss", "mcse", "low", "high", "p_changed", "p_largest"]].round(3))

# %%
change = comparison.largest_change
p_changed = steps.loc[(change.before, change.after), "p_changed"]
print(
    f"The clustering changed between {change.before} and {change.after}, with probability {p_changed:.2f}. "
    f"No other change is larger, with probability {change.probability:.2f} (MCSE {change.mcse:.2g})."
)

# %% [markdown]
# From 1936 to 1939 hardly any draw changes. After the war, nearly all do: the expected distance between 1945 and 1946
# is 0.54 bits, and its 90% interval reaches from 0 to 0.93. The change between 1948 and 1949 is the second largest. It
# is the largest one with probability 0.19.
#
# ## What separate summaries miss
#
# The column `independent` has the expected distance between a draw of one year and another draw of the next, as if the
# years had separate posteriors. `difference` is the expected distance less that.

# %%
display(steps[["expected_loss", "independent", "difference", "difference_mcse"]].round(3))

# %% [markdown]
# Between 1943 and 1944 the distance would be 0.36 bits, but in the same draw it is 0.09. It is uncertain where Atlantic
# Refining belongs in these years. But a draw that has it with General Electric in one year typically has it there in
# the next year, too. So this uncertainty is no change.
#
# ## Who moved?
#
# The overlap of a firm's clusters in two successive years is 1 in a draw where it keeps all its co-members and gains
# none. Here are its expectations for the two largest changes.

# %%
overlaps = comparison.overlaps["overlap"].to_pandas().T
overlaps.columns = steps.index
display(overlaps[[(1945, 1946), (1948, 1949)]].round(2))

# %% [markdown]
# In 1946, Diamond Match and American Steel have the lowest overlap, as they gain each other. In 1949, it is IBM. But
# a firm's overlap is also below 1 if others join or leave it. How many firms go from which cluster to which?

# %%
flows = comparison.flow_table().set_index(["before", "after"])
display(flows.loc[(1948, 1949)].query("expected > 0.05").round(2))

# %% [markdown]
# In 1949, 0.76 firms are expected to go from cluster 2 to cluster 1, with a 90% interval from 0 to 2. To name a firm,
# take the joint draws: the probability of any event that involves several years is a share of them.

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
    "General Electric with Chrysler in 1945, not in 1946, again in 1950": (
        together(1945, "General Electric", "Chrysler")
        & ~together(1946, "General Electric", "Chrysler")
        & together(1950, "General Electric", "Chrysler")
    ),
    "Atlantic Refining with General Electric in 1937, with Union Oil in 1954": (
        together(1937, "Atlantic Refining", "General Electric") & together(1954, "Atlantic Refining", "Union Oil")
    ),
    "General Motors and US Steel together in 1952, apart in 1954": (
        together(1952, "General Motors", "US Steel") & ~together(1954, "General Motors", "US Steel")
    ),
}
display(pd.Series({event: float(drawn.mean()) for event, drawn in events.items()}, name="probability").round(2))

# %% [markdown]
# And since when is IBM with General Electric, until 1954?

# %%
apart = xr.concat([~together(year, "IBM", "General Electric") for year in layers], pd.Index(list(layers), name="year"))
since = apart.sel(year=slice(None, None, -1)).idxmax("year") + 1  # 1955 if they are apart in 1954
display(since.to_series().value_counts(normalize=True, sort=False).sort_index().rename("probability").round(3))

# %% [markdown]
# IBM invested like Union Oil, Westinghouse and Goodyear until 1947, and like General Electric and Chrysler from 1950
# on. It moved in 1949 with probability 0.53. The change in 1946 has two parts. American Steel's investment fell from
# 9.6 to 4.0 million dollars, nearer to Diamond Match. General Electric's rose from 94 to 160 million, away from
# Chrysler.
#
# ## What the draws cannot tell
#
# - **Which change is the largest.** That of 1946 is likely, but not more than that. More draws would not settle it: the
#   Monte Carlo error of this probability is 0.008.
# - **What the model leaves out.** It has one variance for all firms, although some vary more than others from year to
#   year. American Steel varies most. With a variance of its own, its fall in 1946 might count as noise.

# %%
display(np.log(investment).diff().std().rename("standard deviation of annual changes").round(2))

# %% [markdown]
# - **How many groups there are.** Investments are spread over a continuum, of which clusters are sections. Their width
#   depends on the variance within clusters, and firms near an edge move easily: General Electric and Atlantic Refining.
# - **Why.** Investments are compared within each year, so a firm can also move because the others do. The draws do not
#   contain causes; that 1946 is the first year after the war is what we add.
