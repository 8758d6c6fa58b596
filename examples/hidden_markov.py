# %% [markdown]
# # When did the regime change? A hidden Markov model
#
# The states are labels, so they have a consensus partition and all the rest. The Nile's flow fell in 1899 with
# probability 0.79, and there is no indication of a third regime. Two things differ from a mixture: each draw must be a
# whole path of states, not the smoothed probabilities of each year, and figures should keep the order of time.
#
# The series is the annual flow of the Nile at Aswan, 1871 to 1970, in 10⁸ m³ (Cobb 1978,
# [doi:10.1093/biomet/65.2.243](https://doi.org/10.1093/biomet/65.2.243)).

# %%
import numpy as np
import pandas as pd

import posterior_consensus as pc

idata = pc.load_example("nile")
posterior = idata["posterior"]
flow = idata["observed_data"]["flow"].to_series()
summary = pc.summarize(idata, "z", random_seed=1, progressbar=False)
best, membership = summary.partition, pc.membership(summary)
# Figure: Flow of the Nile by year with two regimes shaded, which change about 1898, and below it the posterior
# probability of each regime.
_ = pc.plot_regimes(idata["observed_data"]["flow"], membership)

# %% [markdown]
# The consensus has two regimes and one change, between 1898 and 1899. `pc.membership` gives each year's probability of
# each regime; "elsewhere" is a state that is matched with neither.

# %%
membership

# %%
summary

# %% [markdown]
# ## The model
#
# `examples/sample_nile.py` sampled this model. NUTS samples the parameters of the marginalized model. For each draw,
# `recover` then samples a whole path of states, by forward filtering and backward sampling. It needs pymc-extras 0.15.
#
# ```python
# with pm.Model(coords={"year": flow.index, "state": range(3), "next": range(3)}) as model:
#     mu = pm.Normal("mu", 900, 200, transform=pm.distributions.transforms.ordered, dims="state")
#     variance = pm.InverseGamma("variance", 2, 2 * 120**2)
#     transitions = pm.Dirichlet("transitions", 1 + 19 * np.eye(3), dims=("state", "next"))
#     first = pm.Categorical.dist(p=np.full(3, 1 / 3))
#     z = DiscreteMarkovChain("z", P=transitions, init_dist=first, dims="year", shape=(len(flow),))
#     pm.Normal("flow", mu[z], variance**0.5, observed=flow, dims="year")
#
# marginal = pymc_extras.marginal.marginalize(model, ["z"])
# idata = pm.sample(model=marginal, initvals={"mu": [700, 900, 1100]})
# pymc_extras.marginal.recover(idata, model=marginal)
# ```
#
#
#
# Figures with items in a row take `order`: `"clusters"`, `"data"`, the name of a coordinate, or its values.

# %%
# Figure: Four panels, in the order of the years: similarity matrix with two blocks, number of clusters in the
# draws, credible ball, and mean similarity of each year.
axes = summary.plot(order="data")

# %% [markdown]
# ## When did the regime change?
#
# The probability of a change in a year is one minus its posterior similarity to the year before. It does not depend on
# the labels of the states.

# %%
similarity = pc.posterior_similarity_matrix(summary.draws).values
change = pd.DataFrame({"paths": 1 - np.diagonal(similarity, offset=1)}, index=flow.index[1:])
change.nlargest(6, "paths").round(2)

# %%
z = posterior["z"].values
moved = z[..., 1:] != z[..., :-1]
print(
    f"a change from 1897 to 1902: {moved[..., (change.index >= 1897) & (change.index <= 1902)].any(axis=-1).mean():.3f}"
)

# %% [markdown]
# Most draws that do not change in 1899 do so a few years earlier or later.
#
# ## Is there a third regime?
#
# Most draws visit three states, but disagree on the years of the third. The best partition into three clusters has a
# larger expected loss than the best one into two, by many standard errors. Paths from the prior visit three states at
# least as often, so draws with three states do not indicate a third regime.

# %%
pc.loss_by_n_clusters(summary.draws, random_seed=1, progressbar=False)

# %%
for group in ("prior", "posterior"):
    paths = idata[group]["z"].values.reshape(-1, len(flow))
    print(f"three states: {np.mean([np.unique(path).size == 3 for path in paths]):.2f} of paths from the {group}")

# %% [markdown]
# ## The most probable path, and what it answers
#
# The Viterbi algorithm finds the most probable path given one value of the parameters, here the posterior mean.

# %%
parameters = [posterior[name] for name in ("mu", "variance", "transitions")]
mu, variance, transitions = (values.mean(("chain", "draw")).values for values in parameters)
log_density = -((flow.to_numpy()[:, np.newaxis] - mu) ** 2) / (2 * variance)
ahead = np.zeros_like(log_density)  # of the most probable continuation from each state
for t in reversed(range(len(flow) - 1)):
    ahead[t] = (np.log(transitions) + log_density[t + 1] + ahead[t + 1]).max(axis=1)
viterbi = [np.argmax(log_density[0] + ahead[0])]
for t in range(1, len(flow)):
    viterbi.append(np.argmax(np.log(transitions[viterbi[-1]]) + log_density[t] + ahead[t]))
path = pd.Series(viterbi, flow.index)
path[path.diff() != 0].rename("state from this year on")

# %%
for name, partition in (("consensus", best), ("Viterbi path", viterbi)):
    print(f"expected VI of the {name}: {pc.expected_loss(summary.draws, partition)['expected_loss'].item():.3f}")

# %% [markdown]
# Here both agree, but they answer different questions:
#
# - The Viterbi path is the most probable one given the parameters. It ignores their uncertainty, and can be improbable.
# - The consensus minimizes the expected loss over parameters and paths. Near misses count as near.
# - `membership` has each year's probability. The most probable regimes of all years need not form a probable path.

# %% [markdown]
# ## Why not the smoothed probabilities?
#
# The smoothed probabilities $P(z_t = k \mid \theta, y)$ of each year look like the allocation probabilities of a
# mixture. But the co-clustering probability of two years is the sum of their products only if the years are independent
# given the parameters, which neighbouring years of a Markov chain are not. With the filter $f_t(k)$ and the likelihood
# of later years $b_t(k)$, the probability that they have the same state is
#
# $$P(z_t = z_{t+1} \mid \theta, y) \propto \sum_k f_t(k) \, P_{kk} \, p(y_{t+1} \mid k) \, b_{t+1}(k).$$

# %%
mu, variance, transitions = (values.values for values in parameters)
residual = flow.to_numpy()[:, np.newaxis] - mu[:, :, np.newaxis]
density = np.exp(-(residual**2) / (2 * variance[:, :, np.newaxis, np.newaxis]))
ahead, before = np.ones_like(density), density.copy()
for t in range(1, len(flow)):
    before[:, :, t] *= np.einsum("cdk,cdkl->cdl", before[:, :, t - 1], transitions)
    before[:, :, t] /= before[:, :, t].sum(axis=-1, keepdims=True)
for t in reversed(range(len(flow) - 1)):
    ahead[:, :, t] = np.einsum("cdkl,cdl->cdk", transitions, density[:, :, t + 1] * ahead[:, :, t + 1])
    ahead[:, :, t] /= ahead[:, :, t].sum(axis=-1, keepdims=True)
smoothed = before * ahead / (before * ahead).sum(axis=-1, keepdims=True)
pairs = np.einsum("cdtk,cdkl,cdtl->cdtkl", before[:, :, :-1], transitions, (density * ahead)[:, :, 1:])
soft = pc.as_allocation_probabilities(smoothed)  # wrong here
wrong = pc.posterior_similarity_matrix(soft).values
change["exact"] = 1 - (np.einsum("cdtkk->cdt", pairs) / pairs.sum(axis=(3, 4))).mean(axis=(0, 1))
change["as if independent"] = 1 - np.diagonal(wrong, offset=1)
change.nlargest(6, "paths").round(2)

# %%
change.sum().round(1)

# %%
for loss in ("vi", "binder"):
    right, other = (pc.expected_loss(draws, best, loss=loss)["expected_loss"].item() for draws in (summary.draws, soft))
    print(f"expected {loss}: {right:.3f} from paths, {other:.3f} as if independent")

# %% [markdown]
# Sampled paths have 4.1 changes on average; the exact mean is 4.0. States sampled year by year from the smoothed
# probabilities have 15.3, because an uncertain year ignores its neighbours. So pass sampled paths.
# `pc.allocation_probabilities` refuses a PyMC model with a marginalized `DiscreteMarkovChain`. In Stan, sample the
# paths in `generated quantities`, with `hmm_latent_rng`.
