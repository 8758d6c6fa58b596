"""Tables of results for LaTeX, with the rules of the package booktabs."""

from typing import Any

import pandas as pd

from posterior_consensus.results.display import number

_ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{character: f"{{{character}}}" for character in "[]*"},  # an argument at the start of a row otherwise
        **{character: " " for character in "\n\r\t"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)


class Tabled:
    """A result with a table for LaTeX."""

    def to_dataframe(self) -> pd.DataFrame:
        """Tabulate the result.

        Returns
        -------
        pandas.DataFrame
            The table of the result.
        """
        raise NotImplementedError

    def to_latex(self) -> str:
        r"""Write :meth:`to_dataframe` as a LaTeX table with the rules of the package ``booktabs``.

        Returns
        -------
        str
            A ``tabular`` environment, which needs ``\usepackage{booktabs}`` in the preamble. Names are escaped,
            fractional numbers have four significant digits, and missing values are dashes.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1]], random_seed=1, progressbar=False)
        >>> print(best.with_names(["R&D", "50%"]).to_latex())
        \begin{tabular}{lrrl}
        \toprule
        cluster & size & share & item \\
        \midrule
        R\&D & 2 & 0.6667 & 0, 1 \\
        50\% & 1 & 0.3333 & 2 \\
        \bottomrule
        \end{tabular}
        """
        table = self.to_dataframe()
        if table.index.names != [None] or not isinstance(table.index, pd.RangeIndex):
            table = table.reset_index(names=[name or "" for name in table.index.names], allow_duplicates=True)
        kinds = ["r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in table.dtypes]
        rows = [_row(column for column in table.columns), *map(_row, table.itertuples(index=False, name=None))]
        lines = [rf"\begin{{tabular}}{{{''.join(kinds)}}}", r"\toprule", rows[0], r"\midrule", *rows[1:]]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _row(values: Any) -> str:
    return " & ".join(map(_cell, values)) + r" \\"


def _cell(value: Any) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "--"
    return (number(value) if isinstance(value, float) else str(value)).translate(_ESCAPED)
