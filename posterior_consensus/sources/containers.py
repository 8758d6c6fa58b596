"""Groups of InferenceData, DataTree and files, and the names of the dimensions of their draws.

ArviZ 0.x returns ``InferenceData``, ArviZ 1.x ``xarray.DataTree``, and either object can meet either version. So code
checks the type of the object, never the version.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from posterior_consensus.results.stored_as import HasDataset, HasDataTree, as_nested, storable
from posterior_consensus.runtime.arguments import listing
from posterior_consensus.sources.annotated import annotate, is_annotated

Container = TypeVar("Container")

_USUAL_DIMS = "chain", "draw"


def is_inference_data(data: object) -> bool:
    """Whether `data` is ArviZ 0.x's InferenceData, without importing ArviZ."""
    return any(cls.__name__ == "InferenceData" and cls.__module__.startswith("arviz") for cls in type(data).__mro__)


def has_groups(data: object) -> bool:
    """Whether opened data have groups: an InferenceData or a DataTree."""
    return isinstance(data, xr.DataTree) or is_inference_data(data)


def group_dataset(data: Any, group: str) -> xr.Dataset:
    """Return one group of an InferenceData or a DataTree as a Dataset, and a Dataset as it is.

    Raises ValueError if there is no such group; the message lists the groups present.
    """
    if isinstance(data, xr.Dataset):
        return data
    if isinstance(data, xr.DataTree):
        present: Mapping[str, Any] = data.children
        if group not in present and data.data_vars and group in ("posterior", data.name):  # a group's own node
            return data.to_dataset()
    else:
        present = dict.fromkeys(data.groups())
    if group not in present:
        raise ValueError(f"`group` must name a group of the data; got {group!r}, present: {listing(present)}.")
    node = data[group]
    return node.to_dataset() if isinstance(node, xr.DataTree) else node


def dim_names(sample_dims: Any, data: Any, group: str = "posterior") -> tuple[str, ...]:
    """Names of the sample dimensions, checked; if None, ArviZ's default for the data."""
    if sample_dims is None:
        return _dims_of_arviz(data, group)
    dims = (sample_dims,) if isinstance(sample_dims, str) else sample_dims
    if not isinstance(dims, (list, tuple)) or not all(isinstance(dim, str) for dim in dims):
        raise TypeError(f"`sample_dims` must be a name or a sequence of names; got {sample_dims!r}.")
    if not dims or len(set(dims)) < len(dims):
        raise ValueError(f"`sample_dims` must name at least one dimension, and each once; got {sample_dims!r}.")
    return tuple(dims)


def _dims_of_arviz(data: Any, group: str) -> tuple[str, ...]:
    """The data's attribute `sample_dims` if these dimensions exist, else ArviZ 1's setting.

    Where the data have chains and draws, the setting counts only if ArviZ is imported, which takes half a second.
    """
    if has_groups(data):
        data = group_dataset(data, group)
    if isinstance(data, (xr.Dataset, xr.DataArray)):
        named = np.atleast_1d(data.attrs.get("sample_dims", [])).tolist()
        if named and set(named) <= set(data.dims):
            return tuple(named)
        if not set(_USUAL_DIMS) <= set(data.dims) or "arviz_base" in sys.modules:
            return _arviz_setting()
    return _USUAL_DIMS


def _arviz_setting() -> tuple[str, ...]:
    try:
        from arviz_base.validate import validate_sample_dims
    except ImportError:  # ArviZ 0
        return _USUAL_DIMS
    return tuple(validate_sample_dims(None))


def open_tree(path: Path) -> xr.DataTree:
    """Open a NetCDF or Zarr file with its groups.

    Raises FileNotFoundError if the file does not exist. Raises ValueError if it is neither NetCDF nor Zarr. Raises
    ImportError if it is a Zarr store and the package zarr is missing.
    """
    if not path.exists():
        raise FileNotFoundError(f"`data` must be a path to a NetCDF or Zarr file; there is no {str(path)!r}.")
    if path.is_dir() and find_spec("zarr") is None:
        raise ImportError(f"Reading {path.name!r} needs the package zarr: pip install 'posterior-consensus[zarr]'.")
    try:
        return xr.open_datatree(path, engine="zarr" if path.is_dir() else "h5netcdf")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"`data` must be a path to a NetCDF 4 or Zarr file; {path.name!r} cannot be read as one ({error})."
        ) from error


def attach(data: Container, *results: HasDataset | HasDataTree, group: str = "consensus") -> Container:
    """Add results to a posterior as a group, or to an AnnData as columns, so that they are saved with it.

    Parameters
    ----------
    data : arviz.InferenceData, xarray.DataTree or AnnData
        A posterior is not changed, and its arrays are not copied. An AnnData, or any object with a table ``obs`` and a
        dict ``uns``, is changed in place, as functions of scanpy do.
    *results : Summary, ConsensusPartition, ItemUncertainty or any object with ``to_dataset()``
        Results to store. For a posterior, they are merged into one Dataset, which their classes' ``from_dataset``
        reads. A LayersSummary must be the only result; its groups come from ``to_datatree``, and `data` must be a
        DataTree. A result's own name that the items have for their dimension or a coordinate is prefixed by
        ``result_``. For an AnnData, see Notes.
    group : str
        Name of the new group, or of the columns. An existing group of that name is replaced.

    Returns
    -------
    InferenceData, DataTree or AnnData
        A posterior of the same type as `data`. The new group survives ``to_netcdf`` and ``to_zarr``; ``to_zarr`` of
        ArviZ 0.x needs zarr 2. Of an AnnData, `data` itself.

    Raises
    ------
    TypeError
        If `data` cannot hold groups or columns, or a result has no columns for an AnnData.
    ValueError
        If no result is given, two results store different values under one name, or an AnnData has observations that
        the results do not have.

    Warns
    -----
    UserWarning
        If a cluster has a single observation of an AnnData: ``scanpy.tl.rank_genes_groups`` does not take it.

    See Also
    --------
    as_runs : Runs of a clustering program in the columns of an AnnData.
    Summary.to_dataset : All results of a summary, to be attached.

    Notes
    -----
    An AnnData gets no array of items x items, and ``write_h5ad`` stores all of it:

    - ``obs["consensus"]``, the partition: an ordered categorical of text, whose categories are the names of the
      clusters by number;
    - ``obs["consensus_similarity"]``, of a summary or an item uncertainty: each item's mean similarity to the rest of
      its cluster, NaN alone and for noise;
    - ``obs["consensus_noise"]``, under a loss with noise such as :func:`losses.ballet`: whether the item is noise. Its
      category is missing;
    - ``uns["consensus"]``, a dict: loss, method, expected loss, its standard error, numbers of runs and clusters, the
      names of groups, the versions of the packages, for a summary its methods text, and the names of the columns.
      Its item "stored" has all of the results as arrays and text: ``from_dataset`` and ``from_datatree`` take the dict,
      as in ``Summary.from_dataset(adata.uns["consensus"], pc.as_runs(adata, "leiden_*"))``;
    - ``uns["consensus_colors"]``, the colours that the figures here give up to 20 clusters, which scanpy's plots take.

    Observations are paired with items by name, in any order; an AnnData may have a part of the items. Items without
    names are paired by place. Layers, such as resolutions, have columns of their own: ``obs["consensus_0.5"]``.
    A result of which nothing is said of single items, such as a credible ball, cannot be attached to an AnnData.

    Examples
    --------
    >>> import numpy as np, pandas as pd, xarray as xr
    >>> import posterior_consensus as pc
    >>> z = xr.DataArray(np.array([[[0, 0, 1], [1, 1, 0]]]), dims=("chain", "draw", "obs"), name="z")
    >>> tree = xr.DataTree.from_dict({"posterior": z.to_dataset()})
    >>> tree = pc.attach(tree, pc.consensus_partition(tree, random_seed=1))
    >>> tree["consensus"]["labels"].values
    array([0, 0, 1], dtype=int32)
    >>> pc.results.ConsensusPartition.from_dataset(tree["consensus"]).n_clusters
    2

    Runs in the columns of a table, which stands for an AnnData here:

    >>> from types import SimpleNamespace
    >>> obs = pd.DataFrame({"leiden_0": [*"0011"], "leiden_1": [*"1100"]}, index=["AAC", "ACC", "CAT", "CTT"])
    >>> adata = SimpleNamespace(obs=obs, obs_names=obs.index, uns={})
    >>> best = pc.consensus_partition(pc.as_runs(adata, "leiden_*"), random_seed=1)
    >>> pc.attach(adata, best).obs["consensus"].tolist()
    ['0', '0', '1', '1']
    """
    if not results:
        raise ValueError("`results` must hold at least one result; got none.")
    if not isinstance(group, str) or not group or "/" in group:
        raise ValueError(f"`group` must be a name without '/'; got {group!r}.")
    if any(is_annotated(one) or has_groups(one) for one in results):
        raise TypeError(
            f"`data` must come first, then the results: attach(data, result); got {type(data).__name__} first."
        )
    if is_annotated(data) and not has_groups(data):
        annotate(data, results, group, lambda: as_nested(_stored(results)))
        return data
    return with_groups(data, {group: _stored(results)})


def _stored(results: Sequence[Any]) -> xr.Dataset | xr.DataTree:
    """All results in one Dataset, or the tree of a single one."""
    if len(results) == 1 and hasattr(results[0], "to_datatree"):
        return results[0].to_datatree()
    datasets = []
    for result in results:
        if not hasattr(result, "to_dataset"):
            alone = " with other results; attach it alone" if hasattr(result, "to_datatree") else ""
            raise TypeError(f"`results` must have a method to_dataset(); got {type(result).__name__}{alone}.")
        datasets.append(storable(result.to_dataset()))
    try:
        return xr.merge(datasets, join="exact", compat="identical", combine_attrs="drop_conflicts")
    except (xr.MergeError, ValueError) as error:
        raise ValueError(
            f"`results` store different values of one variable; attach them as separate groups. ({error})"
        ) from error


def with_groups(data: Container, groups: Mapping[str, xr.Dataset | xr.DataTree]) -> Container:
    """Return a posterior with groups added or replaced; `data` is not changed, and its arrays are not copied."""
    if isinstance(data, xr.DataTree):
        tree = data.copy(deep=False)
        for name, dataset in groups.items():
            tree[name] = dataset if isinstance(dataset, xr.DataTree) else xr.DataTree(dataset)
        return tree
    nested = any(isinstance(dataset, xr.DataTree) for dataset in groups.values())
    if is_inference_data(data) and not nested:
        source: Any = data
        return source.__class__(attrs=source.attrs, **{name: source[name] for name in source.groups()} | dict(groups))
    wanted = "a DataTree" if nested else "an InferenceData, a DataTree or an AnnData"
    own = "to_datatree" if nested else "to_dataset"
    raise TypeError(f"`data` must be {wanted}; got {type(data).__name__}. Use the result's {own}().")
