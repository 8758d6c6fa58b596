"""Display of results: a title, a few named values and a table, as text and as HTML, and tables for LaTeX."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Sequence
from datetime import datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from importlib import import_module
from itertools import cycle
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

import posterior_consensus
from posterior_consensus.losses.record import Loss
from posterior_consensus.results.words import DRAWS, RUNS, Words
from posterior_consensus.runtime.names import no_attribute
from posterior_consensus.runtime.tolerances import ROUNDING

MOST_ROWS = 12  # so that a result fits on one screen
_LOSS_NAMES = {
    "vi": "variation of information",
    "binder": "Binder loss",
    "one_minus_ari": "1 - adjusted Rand index",
    "information_distance": "information distance",
    "ballet": "BALLET loss",
    "jaccard": "Jaccard distance",
    "nvi": "normalized variation of information",
    "nid": "normalized information distance",
    "nmi": "1 - normalized mutual information",
    "pear": "1 - PEAR",
    "vi_lower_bound": "lower bound of VI",
    "within_variance": "within-cluster variance",
}
_WIDTH = 80  # characters of a line
_SHORT_NAMES = _LOSS_NAMES | {"vi": "VI", "one_minus_ari": "1 - ARI", "nvi": "NVI", "nid": "NID", "nmi": "1 - NMI"}
_FEWEST_COLUMNS = 2  # of a table, however wide
_COUNTS = ("size", "n_")  # beginnings of names of columns of counts
_MOST_DECIMALS = 6
_DECIMALS = {"rhat": 3, "R-hat": 3}  # of columns; its limit, 1.01, has two
_IRREGULAR = "afhiosuxz"  # last letters of nouns whose plural may not be a plain one
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBER = re.compile(r"-?[\d,]*\.?\d+(e[-+]?\d+)?")
_VERDICT = re.compile(r"(The chains |The groups )?(agree|disagree|do not agree yet|short|unknown|proven)\b")
_CELL = "padding:.2em .6em;vertical-align:top;text-align:left"
_ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{character: f"{{{character}}}" for character in "[]*"},  # an argument at the start of a row otherwise
        **dict.fromkeys("\n\r\t", " "),
        "\\": r"\textbackslash{}",
        "…": r"\ldots{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)


def number(value: float) -> str:
    """Format a number with four significant digits."""
    return f"{value:.4g}"


def with_decimals(table: pd.DataFrame, missing: str, separator: str = "") -> pd.DataFrame:
    """Format each column of fractional numbers with one number of decimals, and `missing` for missing ones.

    `separator` divides thousands, of integers only in columns of a size or a number, such as "n_runs": others may be
    names.
    """
    shown = table.copy()
    for k, (name, kind) in enumerate(table.dtypes.items()):
        column = table.iloc[:, k]
        if pd.api.types.is_float_dtype(kind):
            values = column.to_numpy(np.float64, na_value=np.nan)
            form = f"{separator}{_form_of(str(name), values[np.isfinite(values)])}"
        elif pd.api.types.is_integer_dtype(kind) and ((of_counts := str(name).startswith(_COUNTS)) or column.hasnans):
            form = separator * of_counts
        elif pd.api.types.is_object_dtype(kind):
            shown.isetitem(k, column.where(column.notna(), missing).array)
            continue
        else:
            continue
        shown.isetitem(k, [missing if pd.isna(value) else format(value, form) for value in column])
    return shown


def _form_of(name: str, values: npt.NDArray[np.floating]) -> str:
    """Format of a column: two decimals, fewer above 100, more for two digits of the largest and one of the smallest.

    Whole numbers have none. If the smallest needs more than six, each number has four digits of its own.
    """
    sizes = np.abs(values[values != 0])
    if np.array_equal(values, np.rint(values)):
        return ".0f"
    size = math.floor(math.log10(sizes.max()))
    decimals = _DECIMALS.get(name, max(0, min(2, 3 - size), 1 - size))
    if sizes.min() < 0.5 * 10.0**-decimals:
        decimals = -math.floor(math.log10(sizes.min()))
    return f".{decimals}f" if decimals <= _MOST_DECIMALS else ".4g"


def as_html(table: pd.DataFrame, *, index: bool = True, index_names: bool = True) -> str:
    """A table as HTML: numbers are on the right of their column, text is on the left."""
    shown = with_decimals(table, "-", ",")
    sides = ["right" if _has_numbers(table.iloc[:, k], shown.iloc[:, k]) else "left" for k in range(table.shape[1])]
    markup = shown.to_html(na_rep="-", border=0, index=index, index_names=index_names)
    names, rest = markup.split("</tr>", 1)
    before, *columns = names.rsplit("<th>", len(sides))
    head = "".join([before, *(_aligned("th", *one) for one in zip(columns, sides, strict=True))])
    before, *cells = rest.split("<td>")
    body = "".join([before, *(_aligned("td", *one) for one in zip(cells, cycle(sides), strict=False))])
    return f"{head}</tr>{body}"


def _has_numbers(column: pd.Series, shown: pd.Series) -> bool:
    """Whether a column is one of numbers, possibly in text, with dashes for missing ones."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    cells = {str(cell) for cell in shown[column.notna()]} - {"-"}
    return bool(cells) and all(map(_NUMBER.fullmatch, cells))


def coded(text: str) -> str:
    """A text as HTML, with code between backticks."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _aligned(tag: str, cell: str, side: str) -> str:
    """The rest of a cell, after its tag, at a side of its column."""
    return f"<{tag} style='text-align:{side}'>{cell}"


def at_most(value: float, form: str) -> str:
    """Format an upper bound: the smallest number of a format, such as ".2f", ",.0f", ".3g" or ".1%", not below it."""
    return _outwards(value, form, ROUND_CEILING)


def at_least(value: float, form: str) -> str:
    """Format a lower bound: the largest number of a format, see :func:`at_most`, that is not above it."""
    return _outwards(value, form, ROUND_FLOOR)


def _outwards(value: float, form: str, rounding: str) -> str:
    """A number rounded in one direction, unless it is one of this format but for the rounding of a computation."""
    if not np.isfinite(value) or value == 0:
        return format(value, form)
    exact, digits, kind = Decimal(repr(float(value))), int(form.strip(",")[1:-1]), form[-1]
    place = exact.adjusted() + 1 - digits if kind == "g" else -digits - 2 * (kind == "%")
    unit, context = Decimal(1).scaleb(place), Context(prec=400)
    shown = exact.quantize(unit, context=context)
    if abs(shown - exact) > abs(exact) * Decimal(ROUNDING):
        shown = exact.quantize(unit, rounding, context)
    return format(float(shown), form)


def apart_from(value: float, limit: float, form: str) -> str:
    """Format a number with as many digits as show on which side of a limit it is."""
    digits = int(form.strip(",")[1:-1])
    for more in range(digits, 17 if value != limit else digits):
        text = format(value, f"{form[: form.index('.')]}.{more}{form[-1]}")
        shown = float(text.replace(",", "").rstrip("%")) / (100 if form[-1] == "%" else 1)
        if (shown - limit) * (value - limit) > 0:
            return text
    return format(value, form)


def quantity(value: float, unit: str, digits: int = 6) -> str:
    """Format a number with its unit, if it has one."""
    return with_unit(f"{value:.{digits}g}", unit)


def rounded(value: float, error: float) -> tuple[str, str]:
    """Format a number and its standard error, to one digit of the error, or to two if the first is 1.

    The number has at most four significant digits, and three if the error is unknown or 0.
    """
    if not 0.0 < error < np.inf:
        return f"{value:.3g}", error_in_digits(error)
    digits = _digits_of_error(error)
    decimals = digits - 1 - int(f"{error:.{digits - 1}e}".partition("e")[2])
    most = 3 - int(f"{value:.3e}".partition("e")[2]) if value else decimals
    return f"{value:.{max(0, min(decimals, most))}f}", error_in_digits(error)


def error_in_digits(error: float) -> str:
    """Format a standard error with one digit, or with two if the first is 1, and all digits of whole numbers."""
    if not 0.0 < error < np.inf:
        return "unknown" if np.isnan(error) else f"{error:g}"
    digits = _digits_of_error(error)
    return f"{error:.0f}" if float(f"{error:.{digits}g}") >= 10.0 ** (digits - 1) else f"{error:.{digits}g}"


def _digits_of_error(error: float) -> int:
    return 2 if "1" in (f"{error:.0e}"[0], f"{error:.9e}"[0]) else 1


def with_unit(number: str, unit: str) -> str:
    """A formatted number with its unit, if it has one."""
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}".rstrip()


def percent(share: float) -> str:
    """Format a share in whole percent; one that is not quite 0 or 1 is not 0% or 100%."""
    if 0.0 < share < 0.005:
        return "less than 1%"
    # Two decimals first, so that a share reads alike in percent and as a number: 0.665 is 0.67 and 67%.
    return "more than 99%" if 0.995 <= share < 1.0 - ROUNDING else f"{float(f'{share:.2f}'):.0%}"


def interval(low: int, high: int, share: float, of: str) -> str:
    """Describe a central 90% interval of a number of clusters, and the share of the draws that it has."""
    if low == high:
        return f"{low:,} in {percent(share)} of {of}"
    return f"central 90% interval {low:,} to {high:,}, which has {percent(share)} of {of}"


def name_of(loss: Loss) -> str:
    """Name of a loss in sentences."""
    return _loss_in_words(loss, _LOSS_NAMES)


def short_name_of(loss: Loss) -> str:
    """Name of a loss in front of its value."""
    return _loss_in_words(loss, _SHORT_NAMES)


def _loss_in_words(loss: Loss, names: dict[str, str]) -> str:
    """Name of a loss, with its parameters if they are not the defaults."""
    key, _, parameters = loss.name.partition("(")
    return f"{names.get(key, key)} ({parameters}" if parameters else names.get(key, key)


def name_and_unit(loss: Loss) -> str:
    """Format the short name of a loss, with its unit if it has one."""
    return f"{short_name_of(loss)}, {loss.unit}" if loss.unit else short_name_of(loss)


def number_of_draws(n_draws: int | None, words: Words) -> str:
    """Format the number of draws of a result; without it, runs are those of parts of the items."""
    if n_draws is not None:
        return f"{n_draws:,}"
    return "shares of those that had both items of a pair" if words is RUNS else "none, similarities of pairs alone"


def counted(number: int, noun: str, ending: str = "s") -> str:
    """Format a count with its noun, whose plural has this ending."""
    return f"{number:,} {noun}{ending if number != 1 else ''}"


def unit_of(values: object) -> str:
    """Unit of a user's array or table, from its attribute ``units``; empty if it has none."""
    return str(getattr(values, "attrs", {}).get("units", ""))


def plural(noun: str) -> str:
    """Plural of a noun that has a plain one; empty for other names, such as "obs" or "z_dim_0"."""
    if not re.fullmatch("[a-z]{3,}", noun) or noun[-1] in _IRREGULAR:
        return ""
    return f"{noun[:-1]}ies" if noun[-1] == "y" and noun[-2] not in "aeou" else f"{noun}s"


def counted_items(number: int, dim: object) -> str:
    """Count items by the name of their dimension, such as "82 galaxies", or "20 items (obs)"."""
    if items := plural(str(dim)):
        return f"{number:,} {items if number != 1 else dim}"
    return f"{counted(number, 'item')} ({dim})"


def as_text(value: object) -> str:
    """Format a name; a date at midnight has no time, and parts of a name are separated by colons."""
    if isinstance(value, tuple):
        return ": ".join(map(as_text, value))
    return str(value.date() if isinstance(value, datetime) and value.time() == time() else value)


def listed(values: Sequence[object], most: int) -> str:
    """Format the first few values and the number of the remaining ones."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(map(as_text, values[:most])) + more


def with_names_as_text(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table with text for each name of several parts in some columns."""

    def plain(name: object) -> object:
        return as_text(name) if isinstance(name, tuple) else name

    return table.assign(**{column: table[column].map(plain) for column in columns})


def about_interrupt(stopped: str, missing: Sequence[object], of: str) -> list[tuple[str, str]]:
    """Line that Ctrl-C ended the searches of a result, with the values not searched; empty otherwise."""
    if not stopped:
        return []
    rest = f"; {of} not searched: {listed(missing, 10)}" if missing else ""
    return [("interrupted", f"searched until Ctrl-C: longer searches may find smaller losses{rest}")]


def ended(stopped: str, be: str) -> str:
    """Describe how a search ended early; `be` is the verb of the sentence, "was" or "were"."""
    return "ended at the time limit" if stopped == "seconds" else f"{be} ended by Ctrl-C"


def joined(values: Sequence[object]) -> str:
    """Format all values as an enumeration."""
    *words, last = map(str, values)
    return f"{', '.join(words)} and {last}" if words else last


def table_of_members(members: Sequence[Sequence[object]], n_items: int, dim: str, index: pd.Index) -> pd.DataFrame:
    """Table with a row for each cluster: its size, its share of the items, and its first items."""
    sizes = np.array([len(items) for items in members])
    listed = [", ".join(map(as_text, items[:4])) + (", ..." if len(items) > 4 else "") for items in members]
    return pd.DataFrame({"size": sizes, "share": sizes / n_items, dim: listed}, index=index)


def capitalized(words: str) -> str:
    """Capitalize the first letter, at the start of a sentence."""
    return f"{words[0].upper()}{words[1:]}"


def duration(seconds: float) -> str:
    """Format a time in seconds."""
    return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:,.0f} s"


def ordinal(place: int) -> str:
    """Format a position, counted from 0, as an ordinal."""
    return _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"


def is_rough(ess: float, words: Words = DRAWS) -> bool:
    """Whether the effective sample size is too small for a reliable standard error.

    The estimate of the effective sample size itself is reliable from about 100 per chain on: Vehtari, Gelman, Simpson,
    Carpenter and Buerkner (2021), Bayesian Analysis 16(2), 667-718, https://doi.org/10.1214/20-BA1221. Here the total
    over chains is used: in simulations of chains between two states with a total of 130 to 170, the coverage of 95%
    intervals was 94% to 95%. For a chain that hardly ever changes state, the estimate can be too large. The spread of
    independent runs has no autocorrelation to estimate: of ten, it has a relative error of a quarter.
    """
    return ess < words.enough


def if_rough(ess: float, words: Words) -> str:
    """Warning after a standard error that is rough, else empty."""
    return f", rough: {effective(ess, words)} effective {words.draws}" if is_rough(ess, words) else ""


def effective(ess: float, words: Words) -> str:
    """Format an effective number of draws, on its side of the number that is enough."""
    return apart_from(ess, words.enough, ",.0f")


def with_error(value: float, mcse: float, ess: float = np.nan, words: Words = DRAWS, unit: str = "") -> str:
    """Format a number with its standard error, to the digits that this allows, and a warning if that is rough."""
    shown, error = rounded(value, mcse)
    return f"{with_unit(shown, unit)} ({words.mcse} {error}{if_rough(ess, words)})"


def about_errors(sizes: npt.ArrayLike, words: Words = DRAWS) -> list[tuple[str, str]]:
    """Line that warns of rough standard errors of a table, from their effective sample sizes; empty otherwise."""
    known = np.asarray(sizes, np.float64)
    rough = known[known < words.enough]
    return (
        [("errors", f"rough: as few as {effective(rough.min(), words)} effective {words.draws}")] if rough.size else []
    )


Parts = tuple[str, list[tuple[str, str]], pd.DataFrame | None]


class _Plot:
    """The method `plot` of a result: the function of its figure, whose parameters and documentation it has."""

    def __get__(self, result: Shown | None, kind: type[Shown]) -> Any:
        if kind._figure:
            module, name = kind._figure.split(".")
            figure = getattr(import_module(f"{posterior_consensus.__name__}.plots.{module}"), name)
        else:
            figure = _refuse
        return figure if result is None else MethodType(figure, result)


def _refuse(result: Shown, *arguments: Any, **options: Any) -> None:
    """Say which figures show the result, which has none of its own."""
    raise TypeError(f"A {type(result).__name__} has no figure of its own; {result._no_figure}.")


class Shown:
    """A result with a display for terminals and notebooks."""

    _figure: ClassVar[str] = ""
    """Module and name of its figure in `plots`; empty for a record without a figure."""
    _no_figure: ClassVar[str] = "its numbers are in to_dataframe()"

    if TYPE_CHECKING:

        def plot(self, *arguments: Any, **options: Any) -> Any:
            """Plot the result by its own figure."""

    else:
        plot = _Plot()

    def _parts(self) -> Parts:
        """Title, named values and table."""
        raise NotImplementedError

    def _not_shown(self, table: pd.DataFrame) -> tuple[int, str]:
        """Number of rows beyond those shown, and where the user finds them."""
        return len(table) - MOST_ROWS, "to_dataframe()"

    if not TYPE_CHECKING:  # otherwise type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError that suggests similar names."""
            if hasattr(type(self), name):  # a property that failed
                return object.__getattribute__(self, name)
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        title, named, table = self._parts()
        width = max(len(name) for name, _ in named)
        lines = _wrapped(title, _WIDTH, subsequent_indent="  ")
        for name, value in named:
            first, *rest = _wrapped(value, _WIDTH - width - 4) or [""]
            lines += [f"  {name:<{width}}  {first}", *(f"  {'':<{width}}  {line}" for line in rest)]
        if table is None:
            return "\n".join(lines)
        rows, hidden = _columns_that_fit(with_decimals(table.head(MOST_ROWS), "-", ","))
        left_out, where = self._not_shown(table)
        lines += ["", *(f"  {row}" for row in rows)]
        lines += [f"  ... {left_out} more rows in {where}"] * (left_out > 0)
        also = _wrapped(f"  ... more columns: {', '.join(hidden)}", _WIDTH, subsequent_indent=" " * 6)
        return "\n".join(lines + also * bool(hidden))

    def _repr_html_(self) -> str:
        title, named, table = self._parts()
        rows = "".join(
            f"<tr><th style='{_CELL};white-space:nowrap'>{html.escape(name)}</th>"
            f"<td style='{_CELL};max-width:80ch'>{_VERDICT.sub(_in_bold, coded(value), 1)}</td></tr>"
            for name, value in named
        )
        body = more = ""
        if table is not None:
            body = as_html(table.head(MOST_ROWS), index_names=False)
            body = body.replace("<table", "<table style='margin-left:0'", 1)
            body = body.replace("<th>", "<th style='text-align:left'>")
            body = body.replace("style='text-align", "style='padding:.2em .6em;text-align")
            left_out, where = self._not_shown(table)
            if left_out > 0:
                more = f"<p>{left_out} more rows in <code>{where}</code></p>"
        head = f"<strong>{html.escape(title)}</strong><table style='margin-left:0'>{rows}</table>"
        return f"<div>{head}{body}{more}</div>"


def _in_bold(verdict: re.Match[str]) -> str:
    """The word of a verdict in bold, if a value begins with it."""
    return verdict[0] if verdict.start() else f"{verdict[1] or ''}<b>{verdict[2]}</b>"


def _wrapped(text: str, width: int, subsequent_indent: str = "") -> list[str]:
    """Lines of text; a path is not broken, so that it can be copied."""
    return textwrap.wrap(
        text, width, subsequent_indent=subsequent_indent, break_long_words=False, break_on_hyphens=False
    )


def _columns_that_fit(table: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Lines of a table without its last columns if it is too wide, and their names; two columns stay in any case."""
    for n_columns in range(max(1, table.shape[1]), 0, -1):
        lines = table.iloc[:, :n_columns].to_string(index_names=False, na_rep="-").splitlines()
        if n_columns <= _FEWEST_COLUMNS or max(map(len, lines)) <= _WIDTH - 2:
            break
    return lines, list(map(str, table.columns[n_columns:]))


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

    def to_latex(self, caption: str = "", label: str = "") -> str:
        r"""Write :meth:`to_dataframe` as a LaTeX table with the rules of the package ``booktabs``.

        Parameters
        ----------
        caption, label : str
            Caption, in LaTeX, and label of a ``table`` environment around the table. By default there is none.

        Returns
        -------
        str
            A ``tabular`` environment, which needs ``\usepackage{booktabs}`` in the preamble. Names are escaped, missing
            values are dashes, and each column of fractional numbers has one number of decimals. Numbers have a point
            and no separators of thousands, as ``siunitx`` reads them.

        Examples
        --------
        >>> import posterior_consensus as pc
        >>> best = pc.consensus_partition([[0, 0, 1], [0, 0, 1]], random_seed=1, progressbar=False)
        >>> print(best.with_names(["R&D", "50%"]).to_latex())
        \begin{tabular}{lrrl}
        \toprule
        cluster & size & share & item \\
        \midrule
        R\&D & 2 & 0.67 & 0, 1 \\
        50\% & 1 & 0.33 & 2 \\
        \bottomrule
        \end{tabular}
        """
        return latex_table(self.to_dataframe(), caption, label)


def has_row_names(table: pd.DataFrame) -> bool:
    """Whether the index of a table names its rows, rather than counting them."""
    return table.index.names != [None] or not isinstance(table.index, pd.RangeIndex)


def latex_table(table: pd.DataFrame, caption: str, label: str) -> str:
    """Format a table for LaTeX, see :meth:`Tabled.to_latex`."""
    if has_row_names(table):
        table = table.reset_index(names=[name or "" for name in table.index.names], allow_duplicates=True)
    kinds = ["r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in table.dtypes]
    table = with_decimals(table, "--")
    rows = [_latex_row(table.columns), *map(_latex_row, table.itertuples(index=False, name=None))]
    lines = [rf"\begin{{tabular}}{{{''.join(kinds)}}}", r"\toprule", rows[0], r"\midrule", *rows[1:]]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption or label:
        named = [rf"\caption{{{caption}}}"] * bool(caption) + [rf"\label{{{label}}}"] * bool(label)
        lines = [r"\begin{table}", r"\centering", *named, *lines, r"\end{table}"]
    return "\n".join(lines)


def _latex_row(values: Any) -> str:
    return " & ".join(map(_cell, values)) + r" \\"


def _cell(value: Any) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "--"
    text = number(value) if isinstance(value, float) else str(value)
    return text.translate(_ESCAPED).replace("...", r"\ldots{}")
