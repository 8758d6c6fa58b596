# %% [markdown]
# # Which records refer to the same person?
#
# `pc.summarize` with Binder's loss finds a partition of the records, with a cluster for each person. With hundreds of
# clusters, most of one record, it shows pairs of records. A clerk need only review the uncertain ones.
#
# The data are 498 records of 400 people with typing errors, from the second data set of Febrl. `sample_records.py` has
# the hit-and-miss model, of given name, surname, postcode and year of birth. The name of a record ends with the number
# of the true person and a letter; the model does not use it.

# %%
import pandas as pd

import posterior_consensus as pc

tree = pc.load_example("records")
summary = pc.summarize(tree, loss="binder", modes=False, random_seed=1, progressbar=False)
# Figure: Four panels: number of clusters of each size, number of clusters in the draws, numbers of pairs by
# posterior similarity, and the most uncertain pairs by name.
axes = summary.plot()

# %% [markdown]
# Panel a has the numbers of singletons, pairs, triples and so on, with 90% intervals, and panel b the number of people.
# Panel c counts the pairs by probability, most of them nearly certain. Panel d lists the most uncertain.
#
# Binder's loss counts pairs. `modes=False` skips the search for modes.

# %%
summary

# %% [markdown]
# ## Pairs to review
#
# `links.uncertain` has every pair with a posterior similarity from 0.05 to 0.95, most in two clusters. With the fields
# of both records, it is a list for clerical review.

# %%
records = pc.load_example("record_fields")
fields = ["given_name", "surname", "postcode", "date_of_birth"]
links = summary.links
review = links.uncertain[["first", "second", "similarity", "mcse"]]
for end in ("first", "second"):
    review = review.join(
        records[fields].agg(lambda own: ", ".join(own.fillna("?")), axis=1).rename(f"{end} record"), end
    )
review.head(5).round(2)

# %% [markdown]
# These pairs of clusters have the highest mean similarity between their records, and so could be joined.

# %%
links.between_clusters().head(5).round(2)

# %% [markdown]
# ## How many people, and of how many records?
#
# Too many: 400 are true, the interval is 404 to 413. The model splits people whose names are swapped or mistyped. With
# its prior, a Pitman-Yor process, `pc.links` also has the expected number of clusters of each size under the prior.
# [Does the number depend on it?](prior_sensitivity.py)

# %%
prior = pc.priors.pitman_yor(100.0, 0.7)
found = pc.links(summary.draws, summary, prior=prior)
found.sizes.to_dataframe().round(1)

# %%
# Figure: Number of clusters of 1 to 6 records: posterior mean, partition and prior mean; most records are alone.
ax = pc.plot_cluster_sizes(found)

# %% [markdown]
# ## Compared with the truth
#
# All pairs with a similarity above 0.95 are true. Most pairs between 0.05 and 0.5 are true as well: these similarities
# are too low. The model of errors is simple. It treats a mistyped value as an unrelated one, and a given name swapped
# with the surname as two errors.

# %%
pairs = found.to_dataframe()
person = records["entity"]
pairs["true"] = person.loc[pairs["first"]].to_numpy() == person.loc[pairs["second"]].to_numpy()
edges = [0, 0.05, 0.5, 0.95, 1]
by_similarity = pairs.groupby(pd.cut(pairs["similarity"], edges, include_lowest=True), observed=True)
by_similarity.agg(pairs=("true", "size"), mean_similarity=("similarity", "mean"), share_true=("true", "mean"))

# %% [markdown]
# ## To a spreadsheet, or to a paper
#
# `summary.to_csv("tables")` writes all tables to files. `to_latex` of a result returns its table for a paper:

# %%
print("\n".join(links.to_latex().splitlines()[:6]))
