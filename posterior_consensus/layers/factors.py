"""compare_factors(): which of several factors of independent runs their partitions depend on most."""

from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from posterior_consensus.answers.particles import Particles
from posterior_consensus.diagnostics.chance import mean_chance
from posterior_consensus.diagnostics.groups import LEVEL, MOST_RUNS, run_distances, tightness
from posterior_consensus.ensemble.samples import FEWEST_DRAWS, evenly_spaced
from posterior_consensus.losses.lookup import as_loss
from posterior_consensus.losses.record import PartitionLoss
from posterior_consensus.results import display, stored_as
from posterior_consensus.results.stored_as import Stored
from posterior_consensus.results.words import RUNS
from posterior_consensus.runtime.aliases import Flags, Floats, Positions
from posterior_consensus.runtime.tolerances import SAME
from posterior_consensus.sources.conversion import as_draws
from posterior_consensus.sources.factors import factors_of

PERMUTATIONS = 1_999
_COLUMNS = ("n_levels", "n_pairs", "distance", "error", "excess", "excess_limit", "p_value")
_LEVEL_COORDS = ("of_factor", "level", "other_level")
_MOST_LEVELS = 6  # of a factor whose distances between levels are printed


class _Design:
    """Distances (n, n) of runs, and the levels (n, F) of their factors, numbered."""

    def __init__(self, distances: Floats, codes: Positions) -> None:
        self._distances, self._codes = distances, codes
        self.settings, self._setting = np.unique(codes, axis=0, return_inverse=True)
        of_setting = (np.arange(len(self.settings)) == self._setting.reshape(-1, 1)).astype(np.float64)
        self._sums = of_setting.T @ distances @ of_setting
        self._sizes = of_setting.sum(axis=0)

    def between(self) -> Floats:
        """Mean distance (S, S) of a run of one setting and one of another."""
        return self._sums / np.outer(self._sizes, self._sizes)

    def within(self) -> tuple[float, float]:
        """Mean over settings of the mean distance of two runs of one, and its standard error."""
        several = self._sizes > 1
        means = np.diag(self._sums)[several] / (self._sizes * (self._sizes - 1))[several]
        error = means.std(ddof=1) / np.sqrt(means.size) if means.size >= FEWEST_DRAWS else np.nan
        return (float(means.mean()) if means.size else np.nan), float(error)

    def pairs_of(self, factor: int) -> Flags:
        """Which pairs (S, S) of settings differ in this factor alone."""
        differ = self.settings[:, np.newaxis] != self.settings
        return differ[..., factor] & (differ.sum(axis=-1) == 1)

    def test(self, factor: int) -> tuple[float, float, float]:
        """Excess, its limit by chance, and p-value of the test that a factor changes nothing.

        They are NaN if no settings of several runs can show it.
        """
        others = np.delete(self._codes, factor, axis=1)
        stratum = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
        rng, total, can_tell = np.random.default_rng(0), np.zeros(PERMUTATIONS + 1), False
        excess, n_pairs = np.zeros(PERMUTATIONS + 1), 0
        for k in range(int(stratum.max()) + 1):
            rows = np.flatnonzero(stratum == k)
            level = np.unique(self._codes[rows, factor], return_inverse=True)[1]
            if not 1 < level.max() + 1 < rows.size:
                continue
            can_tell = True
            ways = np.concatenate([level[np.newaxis], rng.permuted(np.tile(level, (PERMUTATIONS, 1)), axis=1)])
            own = self._distances[np.ix_(rows, rows)]
            total += tightness(own, ways)
            of_pairs, number = _excess(own, ways)
            excess += of_pairs
            n_pairs += number
        p_value = float(np.mean(total <= total[0] * (1 + SAME))) if can_tell else np.nan
        if n_pairs == 0:
            return np.nan, np.nan, p_value
        limit = np.quantile(excess, 1 - LEVEL, method="inverted_cdf")
        return float(excess[0] / n_pairs), float(limit / n_pairs), p_value


def _excess(distances: Floats, groups: Positions) -> tuple[Floats, int]:
    """Sum over pairs of groups of how much farther apart runs of both are than two runs of one, and number of pairs.

    Assignments are (R, N); groups of one run are left out.
    """
    sizes = np.bincount(groups[0])
    known = [(groups == k).astype(np.float64) for k in np.flatnonzero(sizes > 1)]
    to_runs, n = [own @ distances for own in known], sizes[sizes > 1]
    excess = np.zeros(len(groups))
    for a, b in combinations_with_replacement(range(n.size), 2):
        sums = np.einsum("rt,rt->r", to_runs[a], known[b])
        excess += sums / (n[a] * n[b]) if a < b else -sums * (n.size - 1) / 2 / (n[a] * (n[a] - 1))
    return excess, n.size * (n.size - 1) // 2


def _mean_over_settings(values: Floats, pairs: Flags) -> tuple[float, float]:
    """Mean of values (S, S) over pairs of settings, and its error by the jackknife over settings."""
    if not pairs.any():
        return np.nan, np.nan
    sums, counts = np.where(pairs, values, 0.0).sum(axis=1), pairs.sum(axis=1)
    total, number = sums.sum(), counts.sum()
    own = np.flatnonzero(counts)
    left = number - 2 * counts[own]
    if own.size < FEWEST_DRAWS or not left.all():
        return float(total / number), np.nan
    without = (total - 2 * sums[own]) / left
    return float(total / number), float(np.sqrt((own.size - 1) / own.size * np.square(without - without.mean()).sum()))


@dataclass(frozen=True, eq=False, repr=False)
class FactorComparison(Stored):
    """How far apart runs are that differ in one factor alone; made by :func:`compare_factors`.

    Attributes
    ----------
    table : xarray.Dataset
        Over ``factor``, in the order given: ``n_levels``, the number of values; ``n_pairs``, the number of pairs of
        settings that differ in this factor alone; ``distance``, their mean distance in the loss's unit, with its
        standard ``error`` over settings, NaN for fewer than four; ``excess``, by how much two runs of these pairs are
        farther apart than two runs of one setting, over pairs whose settings both have several runs; ``excess_limit``,
        which the excess is above in 1% of the permutations of the test; and ``p_value`` of the test that the factor
        changes nothing. The last three are NaN if no setting has several runs.
    level_distance : xarray.DataArray of shape (level_pair,)
        Mean distance of runs with two levels of a factor, all else equal, with the coordinates ``of_factor``, ``level``
        and ``other_level``, both in words.
    within, within_error : float
        Mean distance of two runs of one setting, and its standard error over settings; NaN if no setting has two runs.
    chance : float
        Mean distance of two runs with random labels of their cluster sizes.
    settings : xarray.DataArray of shape (run, factor)
        The levels of each run, in words.
    loss : PartitionLoss
        The loss between partitions.
    """

    _figure = "factors.plot_factors"

    table: xr.Dataset = field(metadata=stored_as.table("factor_{}", _COLUMNS))
    level_distance: xr.DataArray = field(metadata=stored_as.array("factor_level_distance"))
    within: float = field(metadata=stored_as.number("factor_within"))
    within_error: float = field(metadata=stored_as.number("factor_within_error"))
    chance: float = field(metadata=stored_as.number("factor_chance"))
    settings: xr.DataArray = field(metadata=stored_as.array("factor_settings"))
    loss: PartitionLoss = field(metadata=stored_as.loss("factor_"))

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the factors.

        Returns
        -------
        pandas.DataFrame
            A row for each factor, in the order given.
        """
        return self.table.to_dataframe()[list(_COLUMNS)]

    def levels(self, factor: str) -> pd.DataFrame:
        """Mean distances between runs of the levels of a factor, all else equal.

        Parameters
        ----------
        factor : str
            Name of a factor.

        Returns
        -------
        pandas.DataFrame
            A row and a column for each level, in their order; symmetric, 0 on the diagonal, and NaN where no two
            settings differ in these two levels alone.

        Raises
        ------
        ValueError
            If there is no factor of this name.
        """
        names = self.table["factor"].values.tolist()
        if factor not in names:
            raise ValueError(f"`factor` must be one of {display.joined(names)}; got {factor!r}.")
        own = self.level_distance[self.level_distance["of_factor"].values == factor]
        first, second = own["level"].values.tolist(), own["other_level"].values.tolist()
        found = list(dict.fromkeys([*first, *second]))
        matrix = pd.DataFrame(0.0, index=pd.Index(found, name=factor), columns=found)
        for one, other, value in zip(first, second, own.values, strict=True):
            matrix.loc[one, other] = matrix.loc[other, one] = value
        return matrix

    def kinds(self, particles: Particles) -> pd.DataFrame:
        """Which level of which factor each kind of runs has.

        Parameters
        ----------
        particles : Particles
            Of the same runs, by :func:`particles`; its modes are the kinds.

        Returns
        -------
        pandas.DataFrame
            A row for each kind, with its number of runs, and the factor and level that say best which runs are of this
            kind: the share of the kind's runs that have the level, and of the level's runs that are of the kind, by
            the largest Jaccard index of the two sets.

        Raises
        ------
        ValueError
            If the particles have no run of the comparison, by their names.
        """
        names = self.settings["run"].values.tolist()
        kind_of = dict(
            zip(particles.assignment["draw"].values.tolist(), particles.mode.values[particles.assignment], strict=True)
        )
        lacking = [name for name in names if name not in kind_of]
        if lacking:
            raise ValueError(f"`particles` must be of the runs compared; run {lacking[0]!r} is not among theirs.")
        kinds, rows = np.array([kind_of[name] for name in names]), []
        for kind in np.unique(kinds):
            own, best = kinds == kind, None
            for factor, levels in zip(self.settings["factor"].values.tolist(), self.settings.values.T, strict=True):
                for level in dict.fromkeys(levels.tolist()):
                    has = levels == level
                    both = int((own & has).sum())
                    one = (both / (own | has).sum(), factor, level, both / own.sum(), both / has.sum())
                    best = one if best is None or one[0] > best[0] else best
            assert best is not None  # as there is a factor
            rows.append((int(kind), int(own.sum()), *best[1:]))
        columns = ["kind", "n_runs", "factor", "level", "share_of_kind", "share_of_level"]
        return pd.DataFrame(rows, columns=columns).set_index("kind")

    @property
    def verdict(self) -> str:
        """What matters most, in words."""
        table = self.to_dataframe()
        known = table[table["distance"].notna()].sort_values("distance", ascending=False)
        if known.empty:
            return "No two settings differ in one factor alone, so what matters cannot be told."
        shown = [
            f"{name} {_amount(*row)}"
            for name, *row in zip(known.index, known["distance"].tolist(), known["error"].tolist(), strict=True)
        ]
        text = f"Mean {display.name_of(self.loss)} of runs that differ in one factor alone: {', '.join(shown)}"
        text += "." if np.isnan(self.within) else f"; of runs of one setting {_amount(self.within, self.within_error)}."
        by_chance = known[known["p_value"] > LEVEL]
        if len(by_chance):
            none = [f"{name} (p = {p:.2g})" for name, p in by_chance["p_value"].items()]
            text += f" Not shown to change anything: {', '.join(none)}."
        untested = known.index[known["p_value"].isna()].tolist()
        if untested:
            text += f" Not tested, as no setting has several runs: {', '.join(untested)}."
        return text

    def _parts(self) -> display.Parts:
        n_settings = len(np.unique(self.settings.values.astype(str), axis=0))
        within = "no two runs of it"
        if not np.isnan(self.within):
            within = f"{_amount(self.within, self.within_error)} between two runs of it"
        lines = [
            ("loss", display.name_and_unit(self.loss)),
            ("one setting", within),
            ("by chance", display.number(self.chance)),
            ("verdict", self.verdict),
        ]
        for name in self.table["factor"].values.tolist():
            levels = self.levels(name)
            if 2 < len(levels) <= _MOST_LEVELS and not _is_numeric(levels.index):
                lines.append((name, _levels_in_words(levels)))
        n_runs, n_factors = self.settings.shape
        title = f"FactorComparison: {display.counted(n_runs, 'run')} of {display.counted(n_settings, 'setting')}"
        return f"{title} of {display.counted(n_factors, 'factor')}", lines, self.to_dataframe()


def _amount(value: float, error: float) -> str:
    return "{} (SE {})".format(*display.rounded(value, error))


def _is_numeric(levels: pd.Index) -> bool:
    return bool(pd.to_numeric(pd.Series(levels), errors="coerce").notna().all())


def _levels_in_words(levels: pd.DataFrame) -> str:
    """Distances between levels, the smallest first."""
    rows, columns = np.triu_indices(len(levels), 1)
    values = levels.to_numpy()[rows, columns]
    shown = [
        f"{levels.index[rows[k]]} to {levels.index[columns[k]]} {values[k]:.3g}"
        for k in np.argsort(values, kind="stable")
        if not np.isnan(values[k])
    ]
    return ", ".join(shown)


def compare_factors(draws: Any, factors: Any, *, loss: str | PartitionLoss | None = None) -> FactorComparison:
    """Compare what independent runs differ in: which factor changes their partitions most, and is it more than chance.

    Parameters
    ----------
    draws : PartitionDraws or Summary
        Independent runs, by :func:`as_runs`, or their summary.
    factors : str, DataFrame or dict
        What the runs differ in: a pattern of the runs' names with a field for each factor, such as
        ``"leiden_{n_neighbours}_{n_pcs}_{resolution}_*"``, with ``*`` for any other text; a table with the runs' names
        as its index and a column for each factor; or a dict from the factors' names to a pattern with ``{}``, to one
        value for each run in their order, or to a dict of values by the runs' names.
    loss : str or PartitionLoss, optional
        Distance between partitions; by default "vi".

    Returns
    -------
    FactorComparison
        Mean distances of runs that differ in one factor alone, their errors, and tests.

    Raises
    ------
    TypeError
        If `factors` is none of these.
    ValueError
        If the runs are draws of chains, a pattern does not fit a run's name, a value is missing, or the loss compares
        no two partitions.

    See Also
    --------
    as_runs : Its `groups` makes a group of each setting of several factors.
    compare_layers : Compare the runs of one factor, with the consensus of each value.

    Notes
    -----
    A setting is a combination of levels. With m(s, t) the mean distance of a run of setting s and one of t,

        distance_f = mean of m(s, t) over pairs of settings that differ in factor f alone,

    which includes the distance of two runs of one setting, ``within``. Settings are what the error counts, not runs:
    with n settings in these pairs, and distance_(-s) the mean over pairs without setting s, it is
    sqrt((n - 1) / n sum_s (distance_(-s) - mean)^2), the jackknife. Runs of one setting that are nearly copies do not
    make it smaller.

    The test of a factor permutes its levels among runs that have all other factors equal, 1,999 times, and compares the
    sum over settings of n_s m(s, s), each run with itself included [1]_. The other factors may do what they do: within
    such a stratum, runs are exchangeable if the factor changes nothing. The p-value is the share of these sums, the
    observed one among them, that are no larger than the observed one. The excess is the mean of m(s, t) less the mean
    of the two settings' distances of two runs, a run and itself left out. Any change counts, with system or without:
    where runs of one setting are nearly copies, as of a program that hardly depends on its seed, every factor has a
    small one. Which factor matters is said by the distances.

    Of more than 200 runs, 200 of their order are compared.

    References
    ----------
    .. [1] Rizzo and Szekely (2010), Annals of Applied Statistics 4(2), 1034-1055. https://doi.org/10.1214/09-AOAS245

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> table = {
    ...     "k10_r1_a": [0, 0, 1, 1, 2, 2], "k10_r1_b": [0, 0, 1, 1, 2, 2],
    ...     "k20_r1_a": [0, 0, 1, 1, 1, 1], "k20_r1_b": [0, 0, 1, 1, 1, 1],
    ...     "k10_r2_a": [0, 0, 1, 1, 2, 3], "k10_r2_b": [0, 0, 1, 1, 2, 2],
    ...     "k20_r2_a": [0, 0, 1, 1, 1, 1], "k20_r2_b": [0, 0, 1, 1, 1, 2],
    ... }
    >>> compared = pc.compare_factors(pc.as_runs(table), "k{neighbours}_r{resolution}_*")
    >>> compared.to_dataframe()["distance"].round(3)
    factor
    neighbours     0.698
    resolution    0.219
    Name: distance, dtype: float64
    """
    draws = as_draws(draws).in_fixed_order()
    if draws.words != RUNS:
        raise ValueError("`draws` must be independent runs, by as_runs(data); got draws of chains.")
    record = as_loss(loss, kind=PartitionLoss)
    if draws.n_draws > MOST_RUNS:
        draws = draws.take(evenly_spaced(draws.n_draws, MOST_RUNS))
    given = factors_of(factors, draws.samples.draw, "factors")
    codes = np.column_stack([np.unique(given[name].to_numpy(), return_inverse=True)[1] for name in given])
    design = _Design(run_distances(draws, record), codes)
    of_pairs = design.between()
    rows, level_pairs = [], []
    for k, name in enumerate(given):
        pairs = design.pairs_of(k)
        levels = np.unique(given[name].to_numpy())
        rows.append((len(levels), int(pairs.sum() // 2), *_mean_over_settings(of_pairs, pairs), *design.test(k)))
        for a, one in enumerate(levels.tolist()):
            for b in range(a + 1, len(levels)):
                chosen = pairs & (design.settings[:, k, np.newaxis] == a) & (design.settings[:, k] == b)
                mean = of_pairs[chosen].mean() if chosen.any() else np.nan
                level_pairs.append((str(name), str(one), str(levels[b]), mean))
    coords = {name: ("level_pair", [one[k] for one in level_pairs]) for k, name in enumerate(_LEVEL_COORDS)}
    columns = {column: ("factor", [row[k] for row in rows]) for k, column in enumerate(_COLUMNS)}
    names = [str(name) for name in given]
    return FactorComparison(
        table=xr.Dataset(columns, {"factor": names}),
        level_distance=xr.DataArray([one[3] for one in level_pairs], coords, ("level_pair",), "level_distance"),
        **dict(zip(("within", "within_error"), design.within(), strict=True)),
        chance=mean_chance(draws, record),
        settings=xr.DataArray(
            given.astype(str).to_numpy(object),
            {"run": draws.samples.draw, "factor": names},
            ("run", "factor"),
            "settings",
        ),
        loss=record,
    )
