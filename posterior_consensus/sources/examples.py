"""The posteriors and tables that come with the package: those of the tutorials."""

from importlib.metadata import PackageNotFoundError, version
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import pandas as pd
import xarray as xr

from posterior_consensus.runtime.arguments import listing
from posterior_consensus.runtime.names import did_you_mean


class _Example(NamedTuple):
    """What one file holds."""

    file: str
    about: str
    rows: str | None = None  # of a table: the column that names its rows
    dtype: type[str] | None = None  # of all columns, where numbers are names


_EXAMPLES = {
    "galaxies": _Example("galaxies.nc", "82 velocities, Dirichlet process"),
    "galaxies_numpyro": _Example("galaxies_numpyro.nc", "the same, allocation probabilities"),
    "galaxies_not_converged": _Example("galaxies_not_converged.nc", "the same, chains that disagree"),
    "iris": _Example("iris.nc", "30 irises, six components"),
    "wine": _Example("wine.nc", "178 wines, three components"),
    "nile": _Example("nile.nc", "100 years, hidden Markov model"),
    "firms": _Example("firms.nc", "11 firms, a clustering each year"),
    "block_model": _Example("block_model.nc", "200 nodes, stochastic block model"),
    "two_answers": _Example("two_answers.nc", "96 plants, two modes"),
    "records": _Example("records.nc", "498 records, record linkage"),
    "record_fields": _Example("record_fields.csv", "fields of these records", "record", str),
    "persons": _Example("persons.csv", "1,000 invented records", "unique_id"),
    "pairs": _Example("pairs.csv", "their scored pairs"),
    "cells": _Example("cells.csv", "700 blood cells, 160 runs", "cell"),
}


def load_example(name: str | None = None) -> Any:
    """Load a posterior or a table that comes with the package, or list what there is.

    Parameters
    ----------
    name : str, optional
        Name of an example, see Notes. Without it, all of them are listed.

    Returns
    -------
    DataTree, InferenceData or DataFrame
        A posterior is a DataTree, or an InferenceData if ArviZ 0.x is installed: what its ``from_netcdf`` returns. All
        functions take both. A table is a DataFrame, and so is the list, with a row for each example.

    Raises
    ------
    ValueError
        If there is no such example; the message lists those there are.

    See Also
    --------
    as_partition_draws : The draws of a posterior.
    summarize : The main results of a posterior.

    Notes
    -----
    Posteriors, with their data as group ``observed_data``; attributes of the groups have model, prior and sampler:

    - ``"galaxies"``: velocities in 1,000 km/s of 82 galaxies (Roeder 1990, `doi:10.1080/01621459.1990.10474918
      <https://doi.org/10.1080/01621459.1990.10474918>`__) under a Dirichlet process mixture of normals. 4 chains of
      1,000 draws, with labels ``z`` and parameters. ``"galaxies_numpyro"`` has log allocation probabilities
      ``log_prob_z`` instead of labels, ``"galaxies_not_converged"`` two chains that disagree.
    - ``"iris"``: length and width of the petals of 30 irises (Fisher 1936, `doi:10.1111/j.1469-1809.1936.tb02137.x
      <https://doi.org/10.1111/j.1469-1809.1936.tb02137.x>`__) under a mixture of six components.
    - ``"wine"``: three measurements of 178 wines (Aeberhard and Forina 1992, `doi:10.24432/C5PC7J
      <https://doi.org/10.24432/C5PC7J>`__) under a mixture of three components, without labels.
    - ``"nile"``: annual flow of the Nile in 100 years (Cobb 1978, `doi:10.1093/biomet/65.2.243
      <https://doi.org/10.1093/biomet/65.2.243>`__) under a hidden Markov model of three states.
    - ``"firms"``: investments of 11 firms in 20 years (Grunfeld 1958, The Determinants of Corporate Investment,
      University of Chicago), with a clustering of the firms in each year.
    - ``"block_model"``: a simulated network of 200 nodes under a stochastic block model.
    - ``"two_answers"``: two traits of 96 made-up plants under mixtures of three components, and of four in the group
      ``four_species``.
    - ``"records"``: 498 records of 400 persons (Christen 2008, `doi:10.1145/1401890.1402020
      <https://doi.org/10.1145/1401890.1402020>`__) under a model of record linkage. The table ``"record_fields"`` has
      their names and addresses, which a generator made.

    Tables:

    - ``"persons"``, 1,000 invented records, and ``"pairs"``, scores of their pairs with splink's column names.
    - ``"cells"``: 700 blood cells (Zheng et al. 2017, `doi:10.1038/ncomms14049
      <https://doi.org/10.1038/ncomms14049>`__) with two coordinates of UMAP, and 160 runs of Leiden and HDBSCAN.

    The draws, scores and runs are ours, under BSD-3-Clause as the code. ``"cells"`` and ``"wine"`` derive from data
    under CC BY 4.0, and the records of ``"records"`` from data under the BSD licence; the others are published figures
    or made up. ``LICENCES.txt``, in the folder of the files, says this of each. The scripts that made the files are in
    the folder ``examples`` of the repository.

    Examples
    --------
    >>> import posterior_consensus as pc
    >>> idata = pc.load_example("galaxies")
    >>> idata["posterior"]["z"].sizes
    Frozen({'chain': 4, 'draw': 1000, 'galaxy': 82})
    >>> pc.load_example().loc["galaxies"]
    returns                           posterior
    about      82 velocities, Dirichlet process
    Name: galaxies, dtype: ...
    """
    if name is None:
        return _list_of_examples()
    if not isinstance(name, str) or name not in _EXAMPLES:
        hint = did_you_mean(name, _EXAMPLES) if isinstance(name, str) else ""
        raise ValueError(f"`name` must be one of {listing(_EXAMPLES)}; got {name!r}.{hint}")
    example = _EXAMPLES[name]
    with as_file(files("posterior_consensus") / "example_data" / example.file) as path:
        if path.suffix == ".csv":
            return pd.read_csv(path, index_col=example.rows, dtype=example.dtype)
        with xr.open_datatree(path, engine="h5netcdf") as file:
            return _of_installed_arviz(file.load())


def _list_of_examples() -> pd.DataFrame:
    rows = {
        name: ("table" if example.file.endswith(".csv") else "posterior", example.about)
        for name, example in _EXAMPLES.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["returns", "about"]).rename_axis("name")


def _of_installed_arviz(tree: xr.DataTree) -> Any:
    """The tree, or an InferenceData where ArviZ is 0.x: its functions take no tree."""
    try:
        if not version("arviz").startswith("0."):
            return tree
    except PackageNotFoundError:
        return tree
    from arviz import InferenceData

    return InferenceData.from_datatree(tree)
