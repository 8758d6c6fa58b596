# %% [markdown]
# # How do I use a posterior of NumPyro or Stan, and are two of its components one group?
#
# NumPyro and Stan marginalize labels, and leave no PyMC model to compute allocation probabilities from. So store them
# with the draws: the logarithms of $P(z_i = k \mid \theta, y_i)$, an array of items x components in every draw. Every
# function then takes the posterior. Stored parameters of the components show whether two of them are one group.

# %%
import posterior_consensus as pc

idata = pc.load_example("galaxies_numpyro")
posterior = idata["posterior"]
summary = pc.summarize(idata, modes=False, random_seed=1, progressbar=False)
# Figure: Similarity matrix of 82 galaxies with six clusters outlined.
ax = pc.plot_psm(summary.draws, summary.partition)

# %%
summary

# %% [markdown]
# ## Store the probabilities
#
# In NumPyro the probabilities are a deterministic site, as in `examples/sample_numpyro.py`:
#
# ```python
# mixture = dist.MixtureSameFamily(dist.Categorical(probs=w), dist.Normal(mu, sigma))
# with numpyro.plate("galaxy", y.size):
#     numpyro.sample("velocity", mixture, obs=y)
# numpyro.deterministic("log_prob_z", jax.nn.log_softmax(mixture.component_log_probs(y), axis=-1))
# ```
#
# In Stan they are a generated quantity, which need not be normalized:
#
# ```stan
# generated quantities {
#   matrix[N, K] log_prob_z;
#   for (n in 1:N)
#     for (k in 1:K)
#       log_prob_z[n, k] = log(w[k]) + normal_lpdf(y[n] | mu[k], sigma[k]);
# }
# ```
#
# `az.from_numpyro(mcmc)` or `az.from_cmdstanpy(fit)` gives the object that is read here, for the velocities of 82
# galaxies.

# %%
posterior["log_prob_z"].sizes

# %% [markdown]
# `log_prob_z` is a usual name, so that it is found. Under any other name, probabilities are found if they sum to one
# over the components. Otherwise pass the name: `pc.summarize(idata, "eta")`. If a posterior also has sampled labels,
# the probabilities are used, because they are less noisy.
#
# ## Does another sampler agree?
#
# The example `"galaxies"` is the posterior of the same model by PyMC, with sampled labels.

# %%
by_pymc = pc.consensus_partition(pc.load_example("galaxies"), random_seed=1, progressbar=False)
print(f"VI between the two: {pc.partition_loss(by_pymc, summary.partition):.3f} bits")

# %% [markdown]
# ## Are two components one group?
#
# A mixture of normals describes a group that is not normal by several components. `pc.component_similarity` compares
# the densities of two galaxies' components, and not their labels: the similarity is one minus the Hellinger distance,
# averaged over the draws. With a PyMC model, `pc.component_similarity(idata, model=model)` finds the components itself.

# %%
similarity = pc.component_similarity(posterior["log_prob_z"], mean=posterior["mu"], sd=posterior["sigma"])
similarity

# %% [markdown]
# Yes: a draw has 8.3 components with galaxies on average, which merge into 6.3 clusters. The figure has the share of
# the total distance that lies within clusters, and below it the distributions of the number of clusters after merging
# (bars) and of the number of components (outline).

# %%
# Figure: Distance within clusters of components by their number, which falls steeply up to five clusters, and below it
# the distributions of the numbers of clusters and of components in the draws.
axes = similarity.plot()

# %% [markdown]
# The result is a similarity matrix, with a partition for each draw. So it has a consensus under Binder's loss, with the
# mean similarity as the pair threshold, and a credible ball.

# %%
merged = pc.consensus_partition(similarity, loss=pc.binder(tau="mean"), random_seed=1, progressbar=False)
by_labels = pc.consensus_partition(summary.draws, loss="binder", random_seed=1, progressbar=False)
pc.credible_ball(similarity.partitions, merged, loss="vi")

# %%
# Figure: Flows of galaxies between Binder's partition by labels, with 8 clusters, and by merged components, with 6.
ax = pc.plot_alluvial({"Binder, labels": by_labels, "Binder, components": merged})

# %% [markdown]
# By labels, two galaxies are alone; by components, they are in the cluster of 30.
