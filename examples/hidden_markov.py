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

# %%
import numpy as np
import pandas as pd
import xarray as xr
from tutorial import DATA, display

import posterior_consensus as pc

flow = pd.read_csv(DATA / "nile.csv", index_col="year")["volume"]
y, n_years, n_states, n_chains = flow.to_numpy(float), len(flow), 3, 4

# %% [markdown]
# ## The sampler
#
# State $k$ has the mean $\mu_k \sim N(900, 200^2)$. All states have the variance
# $\sigma^2 \sim \text{InvGamma}(2, 2 \cdot 120^2)$. Each row of the transition matrix $P$ has a Dirichlet prior, with
# 20 for staying in the state and 1 for each other state: staying has the prior mean 20/22 = 0.91. Gibbs sampling
# updates the parameters given the path, and the path given the parameters. For the path, a filter runs forward and
# gives $f_t(k) = P(z_t = k \mid y_1, \dots, y_t)$. Then states are sampled backward, with
# $P(z_t = k \mid z_{t+1} = l, y) \propto f_t(k) P_{kl}$. Four chains run at once.


# %%
def sampled_transitions(rng, counts):
    """Matrices of transition probabilities, given the numbers of transitions (chains, from, to)."""
    shares = rng.gamma(1 + 19 * np.eye(n_states) + counts)
    return shares / shares.sum(axis=2, keepdims=True)


def sampled_paths(rng, log_density, transitions):
    """Paths of states (chains, years), and P(z_t = k | z_{t+1} = l) of (chains, years, k, l), one at the last year."""
    filtered = np.exp(log_density - log_density.max(axis=2, keepdims=True))
    filtered[:, 0] /= filtered[:, 0].sum(axis=1, keepdims=True)
    for t in range(1, n_years):
        filtered[:, t] *= (filtered[:, t - 1, np.newaxis] @ transitions)[:, 0]
        filtered[:, t] /= filtered[:, t].sum(axis=1, keepdims=True)
    back = filtered[..., np.newaxis] * transitions[:, np.newaxis]
    back[:, -1] = filtered[:, -1, :, np.newaxis]
    back /= back.sum(axis=2, keepdims=True)
    # One candidate for each state of the next year; the backward pass picks among them.
    states = (rng.random((len(back), n_years, 1, 1)) > back.cumsum(axis=2)[:, :, :-1]).sum(axis=2)
    paths = states[:, :, 0]
    for t in reversed(range(n_years - 1)):
        paths[:, t] = states[np.arange(len(back)), t, paths[:, t + 1]]
    return paths, back


rng = np.random.default_rng(1)
paths, variance = rng.integers(n_states, size=(n_chains, n_years)), np.full((n_chains, 1), 120.0**2)
kept = []
for step in range(1200):
    member = np.eye(n_states)[paths]
    precision = 1 / 200**2 + member.sum(axis=1) / variance
    mean = (900 / 200**2 + np.einsum("ctk,t->ck", member, y) / variance) / precision
    mean += rng.standard_normal(mean.shape) / np.sqrt(precision)
    residual = y[:, np.newaxis] - mean[:, np.newaxis]
    squares = (member * residual**2).sum(axis=(1, 2))[:, np.newaxis]
    variance = (2 * 120**2 + squares / 2) / rng.gamma(2 + n_years / 2, size=(n_chains, 1))
    counts = np.einsum("ctk,ctl->ckl", member[:, :-1], member[:, 1:])
    transitions = sampled_transitions(rng, counts)
    paths, back = sampled_paths(rng, -(residual**2) / (2 * variance[:, np.newaxis]), transitions)
    if step >= 200:
        kept.append((paths, back))
states, back = (np.stack(values, axis=1) for values in zip(*kept, strict=True))

# %% [markdown]
# ## From paths to a summary
#
# Each path labels the years, which a coordinate names. States may switch labels from draw to draw.

# %%
labels = xr.DataArray(states, dims=("chain", "draw", "year"), coords={"year": flow.index}, name="state")
summary = pc.summarize(labels, random_seed=1, progressbar=False)
best = summary.consensus
display(summary)

# %% [markdown]
# The consensus has two regimes and one change, between 1898 and 1899. `membership` gives each year's probability of
# each regime. `plot_regimes` plots the series on a background coloured by regime, and these probabilities below it.
# "Elsewhere" is a state that is matched with neither regime. No year is elsewhere with a probability above 0.2.

# %%
membership = pc.membership(summary.draws, best)
axes = pc.plot_regimes(flow, membership)
axes[0].set(ylabel="flow (10⁸ m³)")
display(membership)

# %% [markdown]
# Figures with items in a row take `order`: `"clusters"`, `"data"`, the name of a coordinate, or its values. Here,
# `order` keeps the years in sequence in panels a, c and d. Blocks along the diagonal of the similarity matrix are
# regimes.

# %%
axes = summary.plot(order="year")

# %% [markdown]
# ## When did the regime change?
#
# The probability of a change in a year is one minus its posterior similarity to the year before. It does not depend on
# the labels of the states.

# %%
similarity = pc.posterior_similarity_matrix(summary.draws).values
change = pd.DataFrame({"paths": 1 - np.diagonal(similarity, offset=1)}, index=flow.index[1:])
display(change.nlargest(6, "paths").round(2))

# %% [markdown]
# The change in 1899 has probability 0.78. Most other draws change a few years earlier or later, so nearly all change
# between 1897 and 1902. The literature dates the change to 1898, the last year of the first regime. The two wet years
# 1916 and 1917 are in another state than their neighbours with a probability below 0.2.

# %%
z = states.reshape(-1, n_years)
around = (flow.index[1:] >= 1897) & (flow.index[1:] <= 1902)
print(f"a change from 1897 to 1902: {np.mean((z[:, 1:] != z[:, :-1])[:, around].any(axis=1)):.3f}")

# %% [markdown]
# ## Is there a third regime?
#
# Most draws visit three states, but they do not agree on the years of the third. The best partition into three clusters
# has a larger expected loss than the best one into two, by many standard errors.

# %%
display(pc.loss_by_n_clusters(summary.draws, random_seed=1, progressbar=False))

# %% [markdown]
# Draws with three states are not evidence for a third regime: paths from the prior visit three states at least as
# often.

# %%
prior = sampled_transitions(rng, np.zeros((4000, n_states, n_states)))
paths, _ = sampled_paths(rng, np.zeros((4000, n_years, n_states)), prior)
print(f"three states: {np.mean([np.unique(path).size == 3 for path in paths]):.2f} of paths from the prior")

# %% [markdown]
# ## Why not the smoothed probabilities?
#
# Many programs store the smoothed probabilities $P(z_t = k \mid \theta, y)$ of each year alone. They look like the
# allocation probabilities of a mixture. But the co-clustering probability of two years is the sum of the products of
# these probabilities only if the years are independent given the parameters. In a Markov chain, neighbouring years are
# not. The probability that they have the same state is
#
# $$P(z_t = z_{t+1} \mid \theta, y) = \sum_k P(z_t = k \mid z_{t+1} = k, \theta, y) \, P(z_{t+1} = k \mid \theta, y).$$

# %%
smoothed = back[..., 0].copy()  # right at the last year
for t in reversed(range(n_years - 1)):
    smoothed[:, :, t] = (back[:, :, t] @ smoothed[:, :, t + 1, :, np.newaxis])[..., 0]
stay = np.einsum("cdtkk,cdtk->cdt", back[:, :, :-1], smoothed[:, :, 1:])
soft = pc.as_allocation_probabilities(smoothed)  # wrong here
wrong = pc.posterior_similarity_matrix(soft).values
change["exact"] = 1 - stay.mean(axis=(0, 1))
change["as if independent"] = 1 - np.diagonal(wrong, offset=1)
display(change.nlargest(6, "paths").round(2))
display(change.sum().round(1))

# %% [markdown]
# Sampled paths have 4.0 changes on average, which agrees with the exact probabilities. States that are sampled year by
# year from the smoothed probabilities have 15.1, because the state of an uncertain year ignores its neighbours. The
# consensus is the same here, because the two regimes differ clearly. But expected losses differ, and so do the credible
# ball and every other result that rests on pairs or on whole partitions.

# %%
for loss in ("vi", "binder"):
    right, other = (pc.expected_loss(draws, best, loss=loss)["expected_loss"].item() for draws in (summary.draws, soft))
    print(f"expected {loss}: {right:.3f} from paths, {other:.3f} as if independent")

# %% [markdown]
# So pass sampled paths. `allocation_probabilities` refuses a PyMC model with a marginalized `DiscreteMarkovChain` for
# this reason; `pymc_extras.marginal.recover` samples its paths from version 0.15 on. In Stan, sample them in
# `generated quantities`, with `hmm_latent_rng`.
