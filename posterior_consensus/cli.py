"""The command `posterior-consensus`: summarize a file of draws, or of scored pairs, without writing Python."""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

import posterior_consensus
from posterior_consensus.bounds.bound import status
from posterior_consensus.ensemble.scored_pairs import ScoredPairs
from posterior_consensus.plots.frame import save_figure
from posterior_consensus.results import display
from posterior_consensus.runtime.arguments import check_between, check_count, check_left_out, listing
from posterior_consensus.runtime.executor import Clock
from posterior_consensus.runtime.files import written_whole
from posterior_consensus.sources.containers import group_dataset, open_tree
from posterior_consensus.sources.conversion import opened
from posterior_consensus.sources.formats import (
    PLAIN,
    WRITTEN,
    alternatives,
    are_chains,
    format_of,
    is_plain,
    names_of,
)
from posterior_consensus.sources.layers import as_layers, layer_of
from posterior_consensus.sources.plain_files import columns_of_file, read_columns, read_numbers
from posterior_consensus.sources.tables import BY_COLUMN
from posterior_consensus.sources.where import Where
from posterior_consensus_command import FAILED, INTERRUPTED, EndedAtOnce, complain, parser

if TYPE_CHECKING:
    from posterior_consensus.answers.audited import Audit
    from posterior_consensus.ensemble.layers import Layers
    from posterior_consensus.ensemble.samples import Samples
    from posterior_consensus.summary import LayersSummary, PairsSummary, Summary

_OPTIONS = {"var_name": "--var", "keys": "--var", "layer_dim": "--layers", "tau": "--threshold"}  # by another name
_OPTIONS |= dict.fromkeys(("data", "draws"), "the file")
_PAIR_FILES = ("items", "must_link", "cannot_link")
_OF_AUDIT = ("audit", "answers")
_OF_PAIRS = ("left", "right", "probability", "max_per_source", "max_cluster_size", *_PAIR_FILES)
_OF_LONG = ("item", "run", "label")
_OF_RUNS = ("groups", "noise")
_OF_CHAINS = ("burn_in", "thin", "group", "item_dim", *_OF_PAIRS)
_RUNS = {"rows": 0, "columns": 1}  # the axis of a table
_OF_DRAWS = ("var", "weights", "log_weights", "burn_in", "thin", "prob", "group", "item_dim", "layers")
_PLAIN = names_of(PLAIN)
_MOST_TO_REVIEW = 100  # pairs in JSON
_FIGURES = (".pdf", ".png", ".svg")


def compile_kernels() -> int:
    """Compile kernels beforehand."""
    with EndedAtOnce():
        from posterior_consensus.compilation import compile_all
        from posterior_consensus.kernels._cache import came_compiled

    began = time.monotonic()
    try:
        n_kernels = compile_all()
    except BrokenProcessPool:
        complain("a process was ended, perhaps for want of memory; what is missing is compiled when it is called.")
        return FAILED
    except OSError as error:
        complain(f"kernels cannot be kept: {error}. Set NUMBA_CACHE_DIR to a folder that can be written and has room.")
        return FAILED
    others = "came with the package" if came_compiled() else "were on disk"
    print(f"{n_kernels} kernels compiled in {time.monotonic() - began:.0f} s; the others {others}.")
    return 0


def summarize_files(options: argparse.Namespace) -> int:
    """Summarize as the options say, print and write, and return the exit code."""
    try:
        _check_files(options)
        summary = _summary(options)
        audited = None if options.answers is None else _audit_of(summary, options).answered(_answers_in(options))
        wrote = [_wrote(name, path, options, summary) for name, path in _outputs(options).items()]
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        complain(_in_options(str(error), options))
        return 2
    if options.json:
        rates = {} if audited is None else {"audit": audited.to_dataframe().to_dict("index")}
        print(json.dumps(summary_as_json(summary) | _finite(rates), indent=2))
    else:
        print(_encodable("\n\n".join(str(one) for one in (summary, audited) if one is not None)))
    if not all(wrote):
        return FAILED
    if summary.interrupted:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def _encodable(text: str) -> str:
    r"""A text with escapes such as \xe4 for what standard output cannot encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _in_options(message: str, options: argparse.Namespace) -> str:
    """Name the options that the user typed in place of the arguments of functions."""
    message = message.replace(BY_COLUMN, "--left, --right and --probability").replace("give noise=", "give --noise=")
    for name, option in ({name: f"--{name.replace('_', '-')}" for name in vars(options)} | _OPTIONS).items():
        message = message.replace(f"`{name}`", option)
    return message


def _summary(options: argparse.Namespace) -> Summary | LayersSummary | PairsSummary:
    with EndedAtOnce():  # as these take a second to load
        from posterior_consensus.summary.pairs import summarize_pairs
        from posterior_consensus.summary.summarizing import summarize_posterior
        from posterior_consensus.summary.summary import read_posterior

    thin = check_count("thin", options.thin)
    clock = Clock(options.seconds)
    if options.burn_in < 0:
        raise ValueError(f"`burn_in` must be a number of draws, 0 or more; got {options.burn_in}.")
    check_between("prob", options.prob, 1)
    kept = slice(options.burn_in, None, thin)
    _check_runs(options)
    chosen = {"loss": options.loss, "method": options.method, "n_clusters": options.n_clusters}
    chosen |= {} if options.threshold is None else {"tau": options.threshold}
    searched = {"random_seed": options.random_seed, "progressbar": not (options.quiet or options.json)}
    if options.layers is not None:
        _check_no_audit(options)
        layers = _layers(options, progressbar=searched["progressbar"])
        if not _are_runs(options):
            _check_burn_in(options.burn_in, layers.samples)
            layers = layers.isel(draw=kept)
        limited = {"seconds": clock.part(1.0), "prob": options.prob}
        return posterior_consensus.summarize(layers, **chosen, **searched, **limited)
    with opened(_given_data(options), _where(options), progressbar=searched["progressbar"]) as (data, where):
        if isinstance(data, ScoredPairs):
            _check_no_options_of_draws(options)
        where = replace(where, **_given_weights(options, data))
        posterior = clock("draws", read_posterior, data, where, progressbar=searched["progressbar"])
    if isinstance(posterior, ScoredPairs):
        return summarize_pairs(clock, posterior, chosen, searched)
    _check_no_audit(options)
    samples = posterior.draws.samples
    _check_burn_in(options.burn_in, samples)
    posterior = posterior.take(samples.rows("isel", chain=slice(None), draw=kept))
    return summarize_posterior(clock, posterior, chosen, searched, prob=options.prob)


def _check_no_audit(options: argparse.Namespace) -> None:
    """Refuse audits of draws."""
    check_left_out("draws, as a clerk answers on scored pairs", **{name: getattr(options, name) for name in _OF_AUDIT})


def _audit_of(summary: Any, options: argparse.Namespace) -> Audit:
    """The sample of pairs, with the fields of the records if these are in a table."""
    fields, labels = None, summary.partition.labels
    if options.items is not None:
        columns = [one for one in columns_of_file(options.items) if one not in ("unique_id", "source_dataset")]
        fields = read_columns(options.items, columns, columns).set_axis(labels.indexes[labels.dims[0]])
    return posterior_consensus.audit(summary, fields=fields, random_seed=options.random_seed)


def _answers_in(options: argparse.Namespace) -> pd.DataFrame:
    return pd.read_csv(options.answers, dtype=str, keep_default_na=False)


def _check_no_options_of_draws(options: argparse.Namespace) -> None:
    """Refuse options on draws with scored pairs."""
    for name in _OF_DRAWS:
        if getattr(options, name) != parser().get_default(name):
            raise ValueError(
                f"`{name}` must be left out for scored pairs, which have no draws; got {str(getattr(options, name))!r}."
            )


def _are_runs(options: argparse.Namespace) -> bool:
    return any(getattr(options, name) is not None for name in ("runs", *_OF_LONG))


def _check_runs(options: argparse.Namespace) -> None:
    """Refuse options on chains with runs, and options on runs without them."""
    what = "for independent runs, of which each counts" if _are_runs(options) else "without --runs"
    for name in _OF_CHAINS if _are_runs(options) else _OF_RUNS:
        if (given := getattr(options, name)) != parser().get_default(name):
            raise ValueError(f"`{name}` must be left out {what}; got {str(given)!r}.")
    if options.runs == "rows" and len(options.posterior) > 1:
        raise ValueError("`runs` must be columns for several files, which are one run each; got 'rows'.")


def _check_burn_in(burn_in: int, samples: Samples) -> None:
    if burn_in >= samples.shortest:
        raise ValueError(
            f"`burn_in` must leave draws of each chain; got {burn_in}, the shortest has {samples.shortest}."
        )


def _where(options: argparse.Namespace) -> Where:
    """What the options say of the variable; as_runs has chosen that of runs."""
    return Where(var_name=None if _are_runs(options) else options.var, group=options.group, item_dim=options.item_dim)


def _layers(options: argparse.Namespace, *, progressbar: bool) -> Layers:
    """Layers along a dimension of one variable, or from several files."""
    if _is_file_per_layer(options):
        weights = _given_weights(options, None)
        where = _where(options)
        of_layer = {
            name: layer_of(path, where, progressbar=progressbar) for name, path in _by_stem(options.posterior).items()
        }
        return replace(as_layers(of_layer, **weights), dim=options.layers, ordered=True)
    # A list of files, unopened, would be layers.
    with opened(_given_data(options), _where(options), progressbar=progressbar) as (data, where):
        if isinstance(data, ScoredPairs):
            _check_no_options_of_draws(options)
        return as_layers(
            data,
            where.var_name,
            layer_dim=options.layers,
            item_dim=options.item_dim,
            group=options.group,
            **_given_weights(options, data),
        )


def _by_stem(paths: Sequence[Path]) -> dict[str, Path]:
    """Paths by their names without suffix if these differ, else by themselves."""
    stems = {path.stem: path for path in paths}
    return stems if len(stems) == len(paths) else {str(path): path for path in paths}


def _given_data(options: argparse.Namespace) -> Any:
    """The file or files, or the runs or scored pairs in them if an option says how to read them."""
    if _are_runs(options):
        is_one = len(options.posterior) == 1
        data, axis = (options.posterior[0], _RUNS.get(options.runs)) if is_one else (options.posterior, None)
        given = {name: getattr(options, name) for name in (*_OF_LONG, *_OF_RUNS)}
        return posterior_consensus.as_runs(data, options.var, axis=axis, **given)
    given = {name: getattr(options, name) for name in _OF_PAIRS if getattr(options, name) is not None}
    if len(options.posterior) > 1:
        check_left_out("several files, as scored pairs are in one", **given)
        return options.posterior
    return posterior_consensus.as_pair_similarity(options.posterior[0], **given) if given else options.posterior[0]


def _is_file_per_layer(options: argparse.Namespace) -> bool:
    return len(options.posterior) > 1 and not are_chains(options.posterior)


def _given_weights(options: argparse.Namespace, data: Any) -> dict[str, Any]:
    return {name: _weights_of_option(name, options, data) for name in ("weights", "log_weights")}


def _weights_of_option(name: str, options: argparse.Namespace, data: Any) -> Any:
    """Weights of a file, or a variable of the posterior's group; None where the option is left out."""
    given = getattr(options, name)
    if given is None:
        return None
    if is_plain(given):
        return read_numbers(given)
    if not isinstance(data, xr.DataTree):
        raise ValueError(
            f"`{name}` must be a {_PLAIN} file if draws are tables, a store or several files; got {given!r}."
        )
    dataset = group_dataset(data, options.group)
    if given not in dataset:
        raise ValueError(
            f"`{name}` must be a {_PLAIN} file or name a variable of the group; got {given!r}, present: "
            f"{listing(dataset.data_vars)}."
        )
    return dataset[given].load()


def _check_files(options: argparse.Namespace) -> None:
    """Refuse files that cannot be read or written before the work and not after it."""
    for path in options.posterior:
        _check_file(path)
    if options.answers is not None and not options.answers.is_file():
        raise ValueError(f"--answers must be a file; there is no {str(options.answers)!r}.")
    if _is_file_per_layer(options) and options.layers is None:
        names = ", ".join(repr(str(path)) for path in options.posterior)
        raise ValueError(
            f"Several files must be {_PLAIN} files, one for each chain, or one for each layer with --layers; "
            f"got {names}."
        )
    _check_each_once(options.posterior)
    for name, path in _outputs(options).items():
        _check_writable(name, path)
    _check_apart(options)
    if options.figure is not None and options.figure.suffix.lower() not in _FIGURES:
        raise ValueError(f"--figure must end in {', '.join(_FIGURES)}; got {str(options.figure)!r}.")
    if (options.figure or options.report) and find_spec("matplotlib") is None:
        raise ImportError("--figure and --report need matplotlib: pip install 'posterior-consensus[plots]'.")
    if options.output is None:
        return
    if options.output.suffix not in WRITTEN and not _has_groups(options.posterior):
        raise ValueError(
            f"--output must end in {alternatives(WRITTEN)} for pairs, and if draws are tables, a store or several "
            f"files; got {str(options.output)!r}."
        )
    if options.output.suffix not in (*WRITTEN, ".nc"):
        raise ValueError(
            f"--output must end in {alternatives((*WRITTEN, '.nc'))}; got {str(options.output)!r}. In Python, attach() "
            "gives Zarr."
        )
    needs = WRITTEN[options.output.suffix].needs if options.output.suffix in WRITTEN else ""
    if needs and find_spec(needs) is None:
        raise ImportError(
            f"--output to {options.output.suffix} needs {needs}: pip install 'posterior-consensus[parquet]'."
        )


def _has_groups(paths: Sequence[Path]) -> bool:
    return len(paths) == 1 and format_of(paths[0]).has_groups


def _outputs(options: argparse.Namespace) -> dict[str, Path]:
    given = {name: getattr(options, name) for name in ("report", "figure", "output", "audit")}
    return {name: path for name, path in given.items() if path is not None}


def _check_file(path: Path) -> None:
    if str(path) == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
        given = "standard input" if str(path) == "-" else f"{str(path)!r}, a pipe or a device"
        raise ValueError(
            f"FILE must be a file or a Zarr directory; got {given}, which cannot be read twice. Write the draws to a "
            "file first, by > draws.csv."
        )


def _check_each_once(paths: Sequence[Path]) -> None:
    seen: set[tuple[int | str, ...]] = set()
    for path in paths:
        if _identity(path) in seen:
            raise ValueError(f"Several files must have each file once; got {str(path)!r} twice.")
        seen.add(_identity(path))


def _check_writable(name: str, path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--{name} must be a file in a directory that exists; got {str(path)!r}.")
    try:
        if path.exists():
            path.open("ab").close()
        if path.is_file() or not path.exists():
            tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except OSError as error:
        raise ValueError(f"--{name} must be a file that can be written; {str(path)!r} cannot: {error}.") from error


def _check_apart(options: argparse.Namespace) -> None:
    """Refuse outputs that would overwrite an input or each other."""
    taken = {_identity(path): "the posterior's" for path in options.posterior if path.exists()}
    for name, given in (("--weights", options.weights), ("--log-weights", options.log_weights)):
        if given is not None and os.path.exists(given):  # noqa: PTH110 (Path.exists fails on a name that is too long)
            taken[_identity(Path(given))] = f"that of {name}"
    for name in (*_PAIR_FILES, "answers"):
        if (path := getattr(options, name)) is not None:
            taken[_identity(path)] = f"that of --{name.replace('_', '-')}"
    with suppress(OSError):  # standard output may be closed
        taken[_identity(1)] = "standard output"
    for name, path in _outputs(options).items():
        places = [_identity(place) for place in (path, *path.resolve().parents)]  # a Zarr store is a directory
        other = next((taken[place] for place in places if place in taken), None)
        if other is not None:
            raise ValueError(f"--{name} must be another file than {other}; got {str(path)!r}.")
        taken[places[0]] = f"that of --{name}"


def _identity(file: Path | int) -> tuple[int | str, ...]:
    """Identity of a file: its device and inode; before it exists, its directory's."""
    if isinstance(file, Path) and not file.exists():
        return *_identity(file.resolve().parent), file.resolve().name
    found = os.stat(file)  # noqa: PTH116 (or a descriptor)
    return found.st_dev, found.st_ino


def _wrote(name: str, path: Path, options: argparse.Namespace, summary: Summary | LayersSummary | PairsSummary) -> bool:
    """Write an output, and say so or why not."""
    try:
        if name == "report":
            summary.to_html(path, progressbar=not (options.quiet or options.json))
        else:
            with written_whole(path) as new:
                _write_output(name, new, options, summary)
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"--{name} {str(path)!r} cannot be written: {error.strerror or error}.")
        return False
    print(f"wrote {path}", file=sys.stderr)
    return True


def _write_output(
    name: str, path: Path, options: argparse.Namespace, summary: Summary | LayersSummary | PairsSummary
) -> None:
    if name == "figure":
        save_figure(summary.plot(), path)
    elif name == "audit":
        sample = _audit_of(summary, options).sample
        sample.insert(2, "match", "")
        sample.to_csv(path, index=False)
    elif (write := format_of(path).write) is not None:
        write(_table_of_items(summary), path)
    else:
        with open_tree(options.posterior[0]) as tree:
            found = posterior_consensus.attach(tree.load(), summary)
        if shutil.disk_usage(path.parent).free < found.nbytes:  # HDF5 would end the process where the disk is full
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        found.to_netcdf(path, engine="h5netcdf")


def _table_of_items(summary: Summary | LayersSummary | PairsSummary) -> pd.DataFrame:
    """A row for each item, of each layer where there are layers."""
    from posterior_consensus.summary.pairs import PairsSummary  # takes a second to load, if there is no summary yet

    if isinstance(summary, PairsSummary):
        return summary.to_dataframe().set_index("cluster_id")  # files begin with the index
    if not isinstance(summary, Mapping):
        return summary.items.to_dataframe()
    tables = {name: one.items.to_dataframe() for name, one in summary.items()}
    return pd.concat(tables, names=[summary.layers.dim, *next(iter(tables.values())).index.names])


def summary_as_json(summary: Summary | LayersSummary | PairsSummary) -> dict[str, Any]:
    """What the summary found, as JSON holds it: NaN and infinity become null."""
    from posterior_consensus.summary.pairs import PairsSummary  # takes a second to load, if there is no summary yet

    if isinstance(summary, Mapping):
        return _layers_as_json(summary)
    if isinstance(summary, PairsSummary):
        return _pairs_as_json(summary)
    best, ball, diagnosis, modes = summary.partition, summary.ball, summary.diagnosis, summary.modes
    names = summary.draws.items.names.tolist()
    items = zip(names, best.labels.values.tolist(), summary.items.similarity.values.tolist(), strict=True)
    table = {
        "source": summary.source,
        "n_draws": summary.draws.n_draws,
        "n_chains": len(summary.draws.samples.chains),
        "n_items": summary.draws.n_items,
        "n_clusters": best.n_clusters,
        "loss": best.loss.name,
        "unit": best.loss.unit,
        "expected_loss": best.expected_loss,
        "mcse": best.mcse,
        "lower_bound": summary.lower_bound,
        "optimality": None if summary.optimality_gap is None else status(summary.optimality_gap),
        "ball": {"prob": ball.prob, "radius": ball.radius, "loss": ball.loss.name, "coverage": ball.coverage},
        "modes": None
        if modes is None
        else {
            "status": modes.status,
            "weights": modes.weights.values.tolist(),
            "mcse": modes.weights_mcse.values.tolist(),
            "labels": modes.partitions.values.tolist(),
        },
        "items": [{"item": one, "cluster": k, "similarity": s} for one, k, s in items],
        "chains": {
            "status": diagnosis.status,
            "verdict": diagnosis.verdict,
            "worst_rhat": diagnosis.worst_rhat,
            "least_ess": diagnosis.least_ess,
            "largest_difference": diagnosis.largest_difference.size,
        },
        "findings": summary.findings(),
        "cut": list(summary.cut),
        "seconds": summary.seconds,
    }
    return _finite(table)


def _layers_as_json(summary: LayersSummary) -> dict[str, Any]:
    compared = summary.comparison
    table = {
        "dim": summary.layers.dim,
        "layers": [{"layer": name, **summary_as_json(one)} for name, one in summary.items()],
        "comparison": None
        if compared is None
        else {
            "loss": compared.loss.name,
            "unit": compared.loss.unit,
            "distances": compared.to_dataframe().reset_index().to_dict("records"),
        },
        "findings": summary.findings(),
        "cut": list(summary.cut),
        "seconds": summary.seconds,
    }
    return _finite(table)


def _pairs_as_json(summary: PairsSummary) -> dict[str, Any]:
    best, pairs, found = summary.partition, summary.pairs, summary.links
    records = summary.to_dataframe().astype(object)
    table = {
        "n_items": pairs.n_items,
        "n_scored": pairs.n_scored,
        "n_unscored": pairs.n_unscored,
        "unscored": pairs.unscored,
        "n_clusters": best.n_clusters,
        "loss": best.loss.name,
        "unit": best.loss.unit,
        "threshold": summary.tau,
        "expected_loss": best.expected_loss,
        "lower_bound": best.lower_bound,
        "optimality": None if best.optimality_gap is None else status(best.optimality_gap),
        "components": None if best.info is None else json.loads(best.info.to_json()),
        "precision": found.precision,
        "precision_range": list(found.precision_range),
        "recall": found.recall,
        "items": records.where(records.notna(), None).to_dict("records"),
        "review": display.with_names_as_text(found.review(_MOST_TO_REVIEW), ("first", "second"))
        .astype(object)
        .to_dict("records"),
        "findings": summary.findings(),
        "cut": list(summary.cut),
        "seconds": summary.seconds,
    }
    return _finite(table)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
