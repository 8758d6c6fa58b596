# %% [markdown]
# # Labels in the posterior: the shortest path
#
# A mixture model with a label for every item, `z = pm.Categorical("z", p=w, dims="flower")`, leaves thousands of
# clusterings in the posterior. One call turns them into one clustering, and says how sure it is.
#
# The data are petal length and width of 30 irises. The model is a finite approximation of a Dirichlet process mixture
# of normals. `examples/sample_iris.py` sampled the posterior with PyMC and wrote the small file that is read here. What
# `pm.sample` returned would serve as well.

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
# `z` was found without its name, because nothing else in the posterior can be labels. The same in sentences:

# %%
print("\n".join(summary.findings()))

# %% [markdown]
# ## Did it converge?
#
# The last of the findings comes from `diagnose`. R-hat and effective sample size are ArviZ's, of numbers that do not
# depend on the names of the labels: the number of clusters, their sizes, distances to partitions, and the partition
# itself. The names switch from draw to draw, so that R-hat of `z` itself would say nothing. Sampling labels one by one
# is slow on larger data, and chains often get stuck: [another tutorial](not_converged.py) shows such a run.

# %%
display(summary.diagnosis)

# %% [markdown]
# ## The four-panel figure

# %%
axes = summary.plot()

# %% [markdown]
# On the left are the data by cluster. The smaller a flower's mean similarity to the rest of its cluster, the smaller is
# its point. On the right are the species, which the model did not see.

# %%
petal = idata["observed_data"]["petal"]
species = petal["flower"].str.split("word", " ").isel(word=0).values
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
ax = pc.plot_data(petal, summary.consensus, items=summary.items, ax=left)
ax = pc.plot_data(petal, species, ax=right)

# %% [markdown]
# The flowers that could as well be elsewhere, the least certain first:

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
