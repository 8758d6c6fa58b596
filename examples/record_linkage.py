# %% [markdown]
# # Which records are of one person? Many small clusters
#
# Lists of people have duplicates: one person has two records or more, with typing errors. Record linkage asks which
# records are of one person. A partition of the records answers it: a cluster is a person. There are hundreds of
# clusters, of one to five records, so that a picture of clusters shows nothing. Links do: pairs of records in one
# cluster.
#
# The posterior is that of a hit-and-miss model for 498 records of the second data set of Febrl, of 400 people.
# `sample_records.py` has the model. It sees given name, surname, postcode and year of birth only. The names of records
# end with the true person's number, and a letter for the record; the model did not see them.

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
# `summarize` notices that there are more than 50 clusters, and that most records are in clusters of at most three. It
# then shows links in the place of clusters, in print, in the figure and in the report. Binder's loss counts pairs, and
# suits links. The search for further modes is left out here.

# %%
summary = pc.summarize(tree, loss="binder", answers=False, random_seed=1, progressbar=False)
display(summary)

# %%
print(*summary.findings(), sep="\n")

# %% [markdown]
# ## The figure
#
# Top left are the numbers of singletons, pairs, triples and so on; the lines are 90% intervals. Top right is the number
# of people. Bottom left are all pairs by their probability: most are nearly certain. The few in between are what a
# clerk would look at, and bottom right are the most uncertain of them.

# %%
axes = summary.plot()

# %% [markdown]
# ## The links to look at
#
# `links.uncertain` has every link with a probability between 0.05 and 0.95, with its Monte Carlo standard error. With
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
# The mean probability of the links between two clusters says which two are nearest to one.

# %%
display(links.between_clusters().head(5).round(2))

# %% [markdown]
# ## How many people, and of how many records?
#
# The prior of the model is a Pitman-Yor process. `links` takes it, and gives the expected numbers of clusters by size
# under the prior next to the posterior.

# %%
prior = pc.priors.pitman_yor(100.0, 0.7)
found = pc.links(summary.draws, summary, prior=prior)
display(found.sizes.to_dataframe().round(1))

# %%
ax = pc.plot_cluster_sizes(found)

# %% [markdown]
# ## Compared with the truth
#
# The data are made, so that the true people are known. All links with a probability above 0.95 are true. Of those
# between 0.05 and 0.5 most are true as well, more than their probabilities say. The model takes a typing error for an
# unrelated value, and a given name that changes places with the surname for two errors. A better model of errors would
# move these links; the uncertain ones are where it matters.

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
# `summary.to_csv("tables")` writes the links, the clusters, the items and the findings to files. `to_latex` of any
# result writes its table for a paper:

# %%
print("\n".join(links.to_latex().splitlines()[:6]))
