# %% [markdown]
# # States in the order of time: a hidden Markov model
#
# The states of a hidden Markov model are labels, so they have a consensus partition, a credible ball and the rest. Two
# things differ from a mixture. Neighbouring states depend on each other given the parameters, so each draw must be a
# whole path of states. And figures should keep the order of time.
#
# The series is the annual flow of the Nile at Aswan, 1871 to 1970, in 10⁸ m³ (Cobb 1978,
# [doi:10.1093/biomet/65.2.243](https://doi.org/10.1093/biomet/65.2.243)). `examples/data/nile.csv` has the values of
# R's `datasets::Nile`. The flow fell at the end of the 19th century. How many regimes are there, and when did they
# change?
#
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
# Staying in a state has the prior mean 20/22 = 0.91.

# %%
import numpy as np
import pandas as pd
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

with xr.open_datatree(DATA / "nile.nc", engine="h5netcdf") as file:
    idata = file.load()
posterior = idata["posterior"].to_dataset()
flow = idata["observed_data"]["flow"].to_series()
summary = pc.summarize(idata, "z", random_seed=1, progressbar=False)
best = summary.consensus
display(summary)

# %% [markdown]
# The consensus has two regimes and one change, between 1898 and 1899. `membership` gives each year's probability of
# each regime. `plot_regimes` plots the series on a background coloured by regime, and these probabilities below it.
# "Elsewhere" is a state that is matched with neither regime. No year is elsewhere with a probability above 0.2.

# %%
membership = pc.membership(summary)
axes = pc.plot_regimes(flow, membership)
axes[0].set(ylabel="flow (10⁸ m³)")
display(membership)

# %% [markdown]
# Figures with items in a row take `order`: `"clusters"`, `"data"`, the name of a coordinate, or its values. Here,
# `order` keeps the years in sequence in panels a, c and d. Blocks along the diagonal of the similarity matrix are
# regimes.

# %%
axes = summary.plot(order="data")

# %% [markdown]
# ## When did the regime change?
#
# The probability of a change in a year is one minus its posterior similarity to the year before. It does not depend on
# the labels of the states.

# %%
similarity = pc.posterior_similarity_matrix(summary.draws).values
change = pd.DataFrame({"paths": 1 - np.diagonal(similarity, offset=1)}, index=flow.index[1:])
display(change.nlargest(6, "paths").round(2))
z = posterior["z"].values
moved = z[..., 1:] != z[..., :-1]
print(
    f"a change from 1897 to 1902: {moved[..., (change.index >= 1897) & (change.index <= 1902)].any(axis=-1).mean():.3f}"
)

# %% [markdown]
# The change in 1899 has probability 0.79. Most other draws change a few years earlier or later, so nearly all change
# between 1897 and 1902. The literature dates the change to 1898, the last year of the first regime. The next largest
# probabilities are 0.19 in 1916 and 0.15 in 1918, before and after two wet years.

# %% [markdown]
# ## Is there a third regime?
#
# Most draws visit three states, but they do not agree on the years of the third. The best partition into three clusters
# has a larger expected loss than the best one into two, by many standard errors. Draws with three states are not
# evidence for a third regime: paths from the prior visit three states at least as often.

# %%
display(pc.loss_by_n_clusters(summary.draws, random_seed=1, progressbar=False))
for group in ("prior", "posterior"):
    paths = idata[group]["z"].values.reshape(-1, len(flow))
    print(f"three states: {np.mean([np.unique(path).size == 3 for path in paths]):.2f} of paths from the {group}")

# %% [markdown]
# ## The most probable path, and what it answers
#
# The Viterbi algorithm finds the most probable path of states given one value of the parameters. Here it is at the
# posterior mean, which is meaningful because the means are in order.

# %%
parameters = posterior[["mu", "variance", "transitions"]]
mu, variance, transitions = (mean.values for mean in parameters.mean(("chain", "draw")).values())
log_density = -((flow.to_numpy()[:, np.newaxis] - mu) ** 2) / (2 * variance)
ahead = np.zeros_like(log_density)  # of the most probable continuation from each state
for t in reversed(range(len(flow) - 1)):
    ahead[t] = (np.log(transitions) + log_density[t + 1] + ahead[t + 1]).max(axis=1)
viterbi = [np.argmax(log_density[0] + ahead[0])]
for t in range(1, len(flow)):
    viterbi.append(np.argmax(np.log(transitions[viterbi[-1]]) + log_density[t] + ahead[t]))
path = pd.Series(viterbi, flow.index)
display(path[path.diff() != 0].rename("state from this year on"))
for name, partition in (("consensus", best), ("Viterbi path", viterbi)):
    print(f"expected VI of the {name}: {pc.expected_loss(summary.draws, partition)['expected_loss'].item():.3f}")

# %% [markdown]
# Here it has the partition and the change of the consensus. The three results answer different questions:
#
# - The Viterbi path is the most probable path as a whole, given the parameters. It ignores their uncertainty, and one
#   of very many paths can be the most probable one and still be improbable.
# - The consensus partition minimizes the posterior expected loss, over parameters and paths. Near misses count as near.
# - `membership` gives the probability of each year's regime, and so the uncertainty of the change. The most probable
#   regime of each year alone need not form a probable path.

# %% [markdown]
# ## Why not the smoothed probabilities?
#
# Many programs store the smoothed probabilities $P(z_t = k \mid \theta, y)$ of each year alone. They look like the
# allocation probabilities of a mixture. But the co-clustering probability of two years is the sum of the products of
# these probabilities only if the years are independent given the parameters. In a Markov chain, neighbouring years are
# not. With the filter $f_t(k)$ and the likelihood of later years $b_t(k)$, the probability that they have the same
# state is
#
# $$P(z_t = z_{t+1} \mid \theta, y) \propto \sum_k f_t(k) \, P_{kk} \, p(y_{t+1} \mid k) \, b_{t+1}(k).$$

# %%
mu, variance, transitions = (values.values for values in parameters.values())
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
display(change.nlargest(6, "paths").round(2))
display(change.sum().round(1))
for loss in ("vi", "binder"):
    right, other = (pc.expected_loss(draws, best, loss=loss)["expected_loss"].item() for draws in (summary.draws, soft))
    print(f"expected {loss}: {right:.3f} from paths, {other:.3f} as if independent")

# %% [markdown]
# Sampled paths have 4.1 changes on average, which agrees with the exact 4.0. States that are sampled year by year from
# the smoothed probabilities have 15.3, because the state of an uncertain year ignores its neighbours. So expected
# losses differ, and so do the credible ball and every other result that rests on pairs or on whole partitions.
#
# So pass sampled paths. `allocation_probabilities` refuses a PyMC model with a marginalized `DiscreteMarkovChain` for
# this reason. In Stan, sample the paths in `generated quantities`, with `hmm_latent_rng`.
