# %% [markdown]
# # Which records refer to the same person? Many small clusters
#
# Lists of people have duplicates: one person can have several records, with typing errors. Record linkage asks which
# records refer to the same person. The answer is a partition of the records, with a cluster for each person. There are
# hundreds of clusters, most of one record, so a picture of clusters shows nothing. We look at links instead: pairs of
# records in one cluster.
#
# The data are 498 records of 400 people from the second data set of Febrl. `sample_records.py` describes the
# hit-and-miss model and samples its posterior. The model uses given name, surname, postcode and year of birth only.
# The name of a record ends with the number of the true person and a letter for the record; the model does not use it.

# %%
import pandas as pd
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "records.nc", engine="h5netcdf") as file:
    tree = file.load()
records = pd.read_csv(DATA / "records.csv", index_col="record", dtype=str)
fields = ["given_name", "surname", "postcode", "date_of_birth"]
display(records[fields].head())

# %% [markdown]
# ## One call
#
# There are more than 50 clusters, and most records are in clusters of at most three. In this case, the summary shows
# links instead of clusters: in print, in the figure and in the report. We use Binder's loss because it counts pairs.
# `answers=False` skips the search for further modes.

# %%
summary = pc.summarize(tree, loss="binder", answers=False, random_seed=1, progressbar=False)
display(summary)

# %%
print(*summary.findings(), sep="\n")

# %% [markdown]
# ## The figure
#
# Panel a has the numbers of singletons, pairs, triples and so on, with 90% intervals, and panel b the number of people.
# Panel c counts the pairs by probability: most are nearly certain. A clerk would review the few uncertain ones; panel d
# lists the most uncertain of them.

# %%
axes = summary.plot()

# %% [markdown]
# ## Links to review
#
# `links.uncertain` has every link with a probability from 0.05 to 0.95, with its Monte Carlo standard error. With
# the fields of both records, it is a list for clerical review.

# %%
links = summary.links
review = links.uncertain[["first", "second", "probability", "mcse"]]
for end in ("first", "second"):
    review = review.join(
        records[fields].agg(lambda own: ", ".join(own.fillna("?")), axis=1).rename(f"{end} record"), end
    )
display(review.head(8).round(2))

# %% [markdown]
# ## Clusters that could be joined
#
# Two clusters are candidates for joining if the mean probability of the links between them is high. The table has the
# five pairs of clusters with the highest means.

# %%
display(links.between_clusters().head(5).round(2))

# %% [markdown]
# ## How many people, and of how many records?
#
# The prior of the model is a Pitman-Yor process. With this prior, `links` adds the expected number of clusters of each
# size under the prior to those under the posterior.

# %%
prior = pc.priors.pitman_yor(100.0, 0.7)
found = pc.links(summary.draws, summary, prior=prior)
display(found.sizes.to_dataframe().round(1))

# %%
ax = pc.plot_cluster_sizes(found)

# %% [markdown]
# ## Compared with the truth
#
# The records are synthetic, so the true people are known. All links with a probability above 0.95 are true. Most links
# with a probability between 0.05 and 0.5 are true as well: these probabilities are too low. The model of errors is
# simple: it treats a mistyped value as an unrelated one, and a given name swapped with the surname as two errors.

# %%
pairs = found.to_dataframe()
person = records["entity"]
pairs["true"] = person.loc[pairs["first"]].to_numpy() == person.loc[pairs["second"]].to_numpy()
edges = [0, 0.05, 0.5, 0.95, 1]
by_probability = pairs.groupby(pd.cut(pairs["probability"], edges, include_lowest=True), observed=True)
display(
    by_probability.agg(pairs=("true", "size"), mean_probability=("probability", "mean"), share_true=("true", "mean"))
)

# %% [markdown]
# ## To a spreadsheet, or to a paper
#
# `summary.to_csv("tables")` writes tables of links, clusters, sizes and items, the checks of convergence and the
# findings to files. The method `to_latex` of a result returns its table for a paper:

# %%
print("\n".join(links.to_latex().splitlines()[:6]))
