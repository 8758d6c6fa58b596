# %% [markdown]
# # Reporting
#
# A paper needs a paragraph, a table, a figure, and a few statements about what the numbers are not. Here is each of
# them for a mixture of 30 irises, measured by the length and width of their petals. It is a sparse finite mixture: its
# six components have weights Dirichlet(1/6, ..., 1/6), which leave components empty. The labels `z` are in the
# posterior; `examples/sample_iris.py` sampled it with PyMC.

# %%
import xarray as xr

import posterior_consensus as pc

idata = pc.load_example("iris")
summary = pc.summarize(idata, random_seed=1, progressbar=False)
# Figure: Petal length and width of 30 irises, coloured by three clusters.
ax = pc.plot_data(idata["observed_data"]["petal"], summary.partition)

# %% [markdown]
# ## What goes into the paper
#
# | report | where it is |
# |---|---|
# | model, prior, and above all the parameter of the weights, such as a concentration | your model |
# | [effect of the prior](../how_to/uncertainty.md#does-the-partition-depend-on-the-prior) | `pc.prior_sensitivity` |
# | chains, draws, R-hat of the scalar summaries and of the partition | `methods_text()`, `summary.diagnosis` |
# | warm-up, thinning, divergences, R-hat of the concentration and of the log posterior | your sampling, ArviZ |
# | loss, and why | `methods_text()`, your reason |
# | partition: number and sizes of clusters, expected loss with its standard error | `methods_text()`, `to_latex()` |
# | whether it is proven optimal, or a lower bound | `methods_text()`; `pc.certify` can give a better one |
# | uncertainty: credible ball, central 90% interval of the number of clusters | `methods_text()`, the figure |
# | uncertain items by name | the summary, `to_csv()`, panel **d** of the figure |
# | modes: how many were found, on how many draws | `methods_text()`, but see below |
# | version, and random seed | `methods_text()` |
#
# `methods_text()` omits the modes if they were not searched for, and in three other cases. If chains stay in different
# modes, report those of `pc.particles` without weights. If the draws are too few to tell, say so. If the chains
# disagree and no second mode is found, report no partition yet.

# %% [markdown]
# ## The paragraph
#
# Copy it, and add your model. The verdict of `pc.prior_sensitivity` is a sentence, too. The references follow;
# `summary.bibtex()` has their entries.

# %%
print(summary.methods_text())

# %% [markdown]
# ## The table
#
# The table names four items of each cluster; `to_csv` writes tables with every item, for a supplement. `similarity`
# is the mean posterior similarity of an item to the rest of its cluster, averaged over the cluster. The LaTeX needs the
# package booktabs. `summary.partition.with_names(first=1).to_latex()` numbers the clusters from 1; that table has no
# column `similarity`.

# %%
print(summary.to_latex(caption="Clusters of the irises.", label="tab:clusters"))

# %% [markdown]
# ## The figure
#
# Save a PDF for print. A caption: **a** Posterior similarity matrix, the clusters outlined. **b** Posterior
# distribution of the number of clusters: bars, all chains; crosses, single chains; dashed line, the partition.
# **c** The partition, and bounds of its credible ball. **d** Mean similarity of each item: bars, to its own cluster;
# points, to the nearest other cluster, in its colour.

# %%
# Figure: Four panels: similarity matrix of 30 irises with three clusters outlined, number of clusters in the draws,
# credible ball, and mean similarity of each flower to its own and the nearest other cluster.
axes = summary.plot()
axes[0, 0].figure.savefig("irises.pdf")

# %% [markdown]
# The supplement can be the report, one HTML file. `pc.attach` stores all results with the posterior, and `from_dataset`
# reads them again.

# %%
summary.to_html("irises.html", progressbar=False)
idata = pc.attach(idata, summary)
again = pc.results.Summary.from_dataset(idata["consensus"], idata)
print(again.methods_text() == summary.methods_text())

# %% [markdown]
# ## What must be said
#
# ### The number of clusters need not estimate the number of components
#
# The irises' model has six components, and draws leave some of them empty: the more, the smaller the parameter 1/6.
# For sparse finite mixtures and Dirichlet process mixtures alike, the prior of this parameter decides more than the
# kind of mixture (Frühwirth-Schnatter and Malsiner-Walli 2019,
# [doi:10.1007/s11634-018-0329-y](https://doi.org/10.1007/s11634-018-0329-y)).
#
# Under a Dirichlet process mixture of fixed concentration, the posterior number of clusters is not a consistent
# estimate of the number of components of a finite mixture (Miller and Harrison 2013,
# [doi:10.48550/arXiv.1301.2708](https://doi.org/10.48550/arXiv.1301.2708)). Nor is it under Pitman-Yor processes (2014,
# [doi:10.48550/arXiv.1309.0024](https://doi.org/10.48550/arXiv.1309.0024)). Nor do we know of a theorem on the number
# of the consensus. Report it as a description of the partition. If the number itself is the question, use a prior on
# the number of components, and show its sensitivity. Even then it is consistent only if [the family of the components
# is right](../background/priors.md#the-number-of-clusters).

# %%
n_clusters = xr.DataArray(summary.draws.n_clusters, dims="sample")
n_clusters.to_series().value_counts(normalize=True).sort_index()

# %% [markdown]
# ### The expected loss is minimized and estimated on the same draws
#
# The minimum of an average is biased downwards, and the Monte Carlo standard error does not include this bias. The line
# `more draws` of a summary estimates it [from two halves of the
# draws](../background/convergence.md#what-would-more-draws-change). Here it is 0, which does not prove that there is no
# bias:

# %%
print(f"excess {summary.excess.value:.4f} bits; the halves' partitions differ by {summary.excess.distance:.4f} bits")

# %% [markdown]
# ### Thresholds that were chosen after the results
#
# The membership of 0.5 below which items are named is a convention, and fixed. The 95% of the ball is a convention, and
# a default. Say so if you changed it after you saw the results. The same holds for the loss, `n_clusters` and the
# `prob` of a partial partition. `tau="auto"` chooses the loss by the posterior, and `pc.binder(tau="mean")` too: name
# the resulting threshold.

# %% [markdown]
# ### Optimality is an indication unless a bound proves it
#
# Several searches that reach one loss are an indication that it is the minimum. A lower bound equal to the expected
# loss is a proof, often found under Binder's loss and, for up to a few hundred items, under the variation of
# information (VI). If `certify` gives a better bound than the quick one of the paragraph, replace that by
# `certificate.lower_bound`:

# %%
certificate = pc.certify(summary.draws, summary.partition, progressbar=False)
certificate

# %% [markdown]
# ### R-hat of the partition has no accepted limit
#
# The limit 1.01 was proposed for scalar quantities. For the R-hat of the partition itself, 1.01 (the chains are short)
# and 1.05 (they disagree) are [conventions](../background/convergence.md) that no source supports.
#
# ### A range of draws has no error
#
# The numbers of clusters in the ball, here 3 to 5, are a range of draws. It grows with the number of draws. The
# paragraph therefore has the central 90% interval of the number of clusters next to it.
