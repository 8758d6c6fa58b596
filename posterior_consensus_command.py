"""The command `posterior-consensus`: its options, and how it ends.

A module beside the package that imports none of its layers: the help, and the answer to a mistyped option, come at
once, and Ctrl-C while the rest is imported ends it as at any other time.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

FAILED = 1
INTERRUPTED = 130  # as shells report a program that SIGINT ended
_BROKEN_PIPE = 141  # as shells report a program that SIGPIPE ended
_COMPILE = "compile"  # in place of files
# The names in pc.LOSSES and pc.METHODS, whose functions take a second to import.
LOSSES = "binder information_distance jaccard nid nmi nvi one_minus_ari vi".split()
METHODS = (
    "align_and_vote basic best_draw boem cc_pivot cspa enumeration exact greedy hbgf hierarchical impurity kcc "
    "lange_buhmann mcla nmf rpm_em sccc sdp spectral"
).split()
_EPILOG = """\
files: NetCDF or Zarr that ArviZ wrote; a store; the directory of an accumulator; .npy, labels or probabilities, draws x
items x components; or tables with a row for each draw and a column for each item, as R's write.csv makes them, in which
columns 'chain' and 'draw' are understood, or with columns such as z[1] and p[1,2], as CmdStan and R's posterior have
them. Several tables or .npy files are one chain each. With --layers, several other files are one layer each, in their
order. Tables end in {tables}.

Scored pairs of records are a table with a row for each pair, in splink's columns or in those that --left, --right and
--probability name. The clusters of the records go to --output, also of those in no pair if --items
names all records. --must-link and --cannot-link are tables of pairs too, such as a review of pairs that was saved:

  posterior-consensus pairs.parquet --items records.parquet --threshold 0.5 -o clusters.csv

How many of these clusters are wrong, a clerk's answers say: --audit writes pairs with the fields of --items, the clerk
fills in the column 'match', 1 or 0, and --answers with the same files and options prints error rates with intervals:

  posterior-consensus pairs.csv --items records.csv --audit sample.csv
  posterior-consensus pairs.csv --items records.csv --answers sample.csv

Independent runs of a clustering program are a table with a column for each run and a row for each item, named by its
first column, a file of items and labels for each run, or a long table with a row for each item and run:

  posterior-consensus obs.csv --runs columns --var 'leiden_*' -o labels.csv
  posterior-consensus seed1.csv seed2.csv seed3.csv --runs columns --noise -1 --report report.html
  posterior-consensus sorts.csv --item card_id --run user_id --label category_id

exit codes: 0 the summary was made; 1 it was made, but an output could not be written; 2 an argument, the file or its
contents are invalid; 130 interrupted, if during the search with the best partition so far; 141 the output was not read
to its end.

posterior-consensus compile compiles kernels for this machine beforehand, for example in the image of a container.

A posterior with marginalized labels needs its PyMC model: use summarize(idata, model=model) in Python.
"""


class EndedAtOnce:
    """Let Ctrl-C end the process without a traceback: within an import, Python can make another error of it.

    A program that handles or ignores Ctrl-C in its own way goes on doing so.
    """

    def __enter__(self) -> None:
        self._is_set = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            if self._is_set:
                signal.signal(signal.SIGINT, _end)
        except ValueError:  # not the main thread, which is the one that is interrupted
            self._is_set = False

    def __exit__(self, *_: object) -> None:
        if self._is_set:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            options = None if list(given) == [_COMPILE] else parser().parse_args(given)
            with EndedAtOnce():
                from posterior_consensus import cli
            return cli.compile_kernels() if options is None else cli.summarize_files(options)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        finally:
            print(end="", flush=True)  # also where standard output is closed, and sys.stdout None
    except OSError as error:  # only of standard output: `cli` reports all other errors
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        if isinstance(error, BrokenPipeError):
            return _BROKEN_PIPE
        complain(f"standard output cannot be written: {error.strerror}.")
        return FAILED


def complain(message: str) -> None:
    """Say why the command fails."""
    print(f"posterior-consensus: {message}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """Options of the command."""
    with EndedAtOnce():
        from posterior_consensus import __version__
        from posterior_consensus.sources.formats import FORMATS, PLAIN, TABLES, WRITTEN, names_of

    made = argparse.ArgumentParser(
        prog="posterior-consensus",
        description="Summarize a posterior of partitions, or scored pairs of records: consensus and its uncertainty.",
        epilog=_EPILOG.format(tables=", ".join(suffix for one in TABLES for suffix in one.suffixes)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    output = f"write a table of the items ({', '.join(WRITTEN)}), or the posterior with a group 'consensus' (.nc)"
    add = made.add_argument
    add("posterior", type=Path, nargs="+", metavar="FILE", help=f"draws or pairs: {names_of(FORMATS)}, see below")
    add("--var", metavar="NAME", help="variable of labels or allocation probabilities; found if there is only one")
    add(
        "--runs",
        choices=("columns", "rows"),
        help="independent runs, in columns or rows of a table; --var chooses by pattern",
    )
    add("--item", metavar="COLUMN", help="runs in a long table, a row for each item and run: column of the items")
    add("--run", metavar="COLUMN", help="its column of the runs")
    add("--label", metavar="COLUMN", help="its column of the labels")
    add("--groups", metavar="PATTERN", help="runs: what they differ in, as {} in their names, such as 'leiden_{}_*'")
    add("--noise", metavar="LABEL", help="runs: label of items that a run puts into no cluster, such as -1")
    add(
        "--weights",
        metavar="FILE|NAME",
        help=f"weights of the draws: a {names_of(PLAIN)} file, or a variable of the group",
    )
    add("--log-weights", metavar="FILE|NAME", help="their logarithms instead")
    add("--burn-in", type=int, default=0, metavar="N", help="draws to drop from the start of each chain (0)")
    add("--thin", type=int, default=1, metavar="N", help="keep every N-th draw of each chain (1)")
    add("--loss", choices=LOSSES, help="loss to minimize (vi; binder for scored pairs)")
    add("--threshold", type=float, metavar="TAU", help="pair threshold of Binder's loss (0.5)")
    add("--method", default="greedy", choices=METHODS, help="how to search (greedy)")
    add("--n-clusters", type=int, metavar="K", help="number of clusters; chosen by the loss by default")
    add("--prob", type=float, default=0.95, help="probability of the credible ball (0.95)")
    add("--seconds", type=float, help="time limit of the summary, which reports what it skips; none by default")
    add("--group", default="posterior", help="group of the file (posterior)")
    add("--item-dim", metavar="DIM", help="dimension of the items")
    add("--layers", metavar="DIM", help="dimension of the layers, if each draw holds several partitions")
    add("--left", metavar="COLUMN", help="scored pairs: column of the first record (unique_id_l)")
    add("--right", metavar="COLUMN", help="scored pairs: column of the second record (unique_id_r)")
    add("--probability", metavar="COLUMN", help="scored pairs: column of the probabilities (match_probability)")
    add("--items", type=Path, metavar="FILE", help="scored pairs: table of all records (unique_id, source_dataset)")
    add("--must-link", type=Path, metavar="FILE", help="scored pairs: table of pairs that must be in one cluster")
    add("--cannot-link", type=Path, metavar="FILE", help="scored pairs: table of pairs that must not be in one cluster")
    add(
        "--max-per-source",
        type=_one_or_names,
        metavar="1|NAMES",
        help="scored pairs: at most one record of each data set in a cluster, or of those named, as a,b",
    )
    add(
        "--audit",
        type=Path,
        metavar="FILE.csv",
        help="scored pairs: write a sample of 300 pairs for a clerk, see below",
    )
    add("--answers", type=Path, metavar="FILE.csv", help="scored pairs: print error rates by a clerk's answers on it")
    add("--max-cluster-size", type=int, metavar="N", help="scored pairs: at most N records in a cluster")
    add("--random-seed", type=int, default=0, help="seed of the search (0)")
    add("--report", type=Path, metavar="FILE.html", help="write a report with figures")
    add("--figure", type=Path, metavar="FILE", help="write the figure of the summary, as PNG, PDF or SVG by its suffix")
    add("-o", "--output", type=Path, metavar="FILE", help=output)
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--quiet", action="store_true", help="show no progress")
    add("--version", action="version", version=__version__)
    return made


def _one_or_names(text: str) -> int | list[str]:
    """A number, or names of data sets."""
    try:
        return int(text)
    except ValueError:
        return text.split(",")


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
