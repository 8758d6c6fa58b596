"""What results say of each item, as columns for a table of the user's, such as `obs` of an AnnData."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from posterior_consensus.runtime.arguments import is_integer


class Annotations(NamedTuple):
    """Columns over the items, and facts about all of them.

    Results that have them return one for each layer, by its name, or one by the name "".
    """

    items: xr.DataArray  # (n_items,): any values over the items, whose coordinate names them
    columns: dict[str, Any]  # values (n_items,) by what follows the name of the group: "" for the partition
    facts: dict[str, Any]  # texts, numbers, and arrays and dicts of them


def as_categories(labels: npt.NDArray[np.integer], names: Sequence[Any]) -> Any:
    """Categories of text, the names of the clusters that occur; missing for a label of -1.

    They are in the order of names that are numbers, which may go on from another layer, else of labels.
    """
    present = np.unique(labels[labels >= 0]).tolist()
    if all(is_integer(names[k]) for k in present):
        present.sort(key=names.__getitem__)
    return pd.Categorical.from_codes(
        pd.Index(present).get_indexer(labels), pd.Index([str(names[k]) for k in present]), ordered=True
    )
