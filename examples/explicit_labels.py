# %% [markdown]
# # Labels in the posterior: the shortest path
#
# A mixture model with a label for every item, `z = pm.Categorical("z", p=w, dims="flower")`, leaves thousands of
# partitions in the posterior. One call finds the partition to report, and quantifies its uncertainty.
#
# The data are petal length and width of 30 irises. The model is a finite approximation of a Dirichlet process mixture
# of normals. `examples/sample_iris.py` sampled the posterior with PyMC and wrote the small file that is read here. You
# can pass the object that `pm.sample` returned just as well.

# %%
import matplotlib.pyplot as plt
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "iris.nc", engine="h5netcdf") as file:
    idata = file.load()
display(idata["posterior"]["z"])

# %% [markdown]
# ## One call

# %%
summary = pc.summarize(idata, random_seed=1)
display(summary)

# %% [markdown]
# `z` was found without its name, because it is the only variable that can be labels.
#
# - `expected vi`: the posterior mean of the variation of information (VI), a distance between partitions, from this
#   partition to the true one. MCSE is its Monte Carlo standard error.
# - `optimality`: how many searches from different starts reached this loss, and whether a lower bound proves it.
# - `95% ball`: the radius of the smallest ball around this partition that contains 95% of the posterior.
# - `ambiguous`: items whose mean posterior similarity to the rest of their cluster is below 0.5. The posterior
#   similarity of two flowers is the share of draws that put them in one cluster. The column `together` of the table is
#   this mean, averaged over the cluster.
# - `modes`: the number of separate modes of the posterior.
# - `chains`: whether the chains agree.
#
# The findings in sentences:

# %%
print("\n".join(summary.findings()))

# %% [markdown]
# ## Did it converge?
#
# The last of the findings comes from `diagnose`. It computes ArviZ's R-hat and effective sample size of quantities that
# do not depend on the names of the labels: the number of clusters, their sizes, distances to partitions, and the
# partition itself. The names switch from draw to draw, so R-hat of `z` would be meaningless. Sampling labels one by one
# is slow on larger data, and chains often get stuck: [another tutorial](not_converged.py) shows such a run.

# %%
display(summary.diagnosis)

# %% [markdown]
# ## The four-panel figure

# %%
axes = summary.plot()

# %% [markdown]
# The next figure shows the data by cluster on the left. The smaller a flower's mean similarity to the rest of its
# cluster, the smaller is its point. On the right are the species, which the model did not see.

# %%
petal = idata["observed_data"]["petal"]
species = petal["flower"].str.split("word", " ").isel(word=0).values
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
ax = pc.plot_data(petal, summary.consensus, items=summary.items, ax=left)
ax = pc.plot_data(petal, species, ax=right)

# %% [markdown]
# The flowers with the least certain clusters, sorted by the margin between their own and the nearest other cluster:

# %%
display(summary.items.to_dataframe().sort_values("margin").head())

# %% [markdown]
# ## Report it
#
# There are three ways to report the results: sentences for the section on methods, with their references; a page
# with all figures, tables and findings, which needs no network; and a group stored with the posterior.

# %%
print(summary.methods_text())

# %%
summary.to_html("irises.html")
idata = pc.attach(idata, summary)
display(idata["consensus"]["labels"])
