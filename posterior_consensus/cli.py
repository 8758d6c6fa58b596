"""The command `posterior-consensus`: summarise a file of draws without writing Python."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import posterior_consensus

if TYPE_CHECKING:
    from posterior_consensus.summary import Summary

_EPILOG = """\
exit codes: 0 the summary was made; 2 an argument, the file or what it holds will not do; 130 interrupted.

A posterior whose labels were marginalised out needs its PyMC model: use summarize(idata, model=model) in Python.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        _check_files(options)
        summary = _summary(options)
        if options.report:
            summary.to_html(options.report)
        if options.figure:
            summary.plot()[0, 0].figure.savefig(options.figure, dpi=200)
        if options.output:
            _write_posterior(options, summary)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        print(f"posterior-consensus: {error}", file=sys.stderr)
        return 2
    print(json.dumps(as_json(summary), indent=2) if options.json else summary)
    for made in filter(None, (options.report, options.figure, options.output)):
        print(f"wrote {made}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="posterior-consensus",
        description="Summarise a posterior of partitions: which clustering, how sure it is, whether the chains agree.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("posterior", type=Path, help="NetCDF or Zarr file that ArviZ wrote")
    add("--var", metavar="NAME", help="variable of labels or soft assignments; found by itself where there is one")
    add("--loss", default="vi", choices=sorted(posterior_consensus.LOSSES), help="loss to minimise (vi)")
    add("--method", default="greedy", choices=sorted(posterior_consensus.METHODS), help="how to search (greedy)")
    add("--n-clusters", type=int, metavar="K", help="number of clusters; chosen by the loss by default")
    add("--prob", type=float, default=0.95, help="probability of the credible ball (0.95)")
    add("--seconds", type=float, help="time after which to end the search; none by default")
    add("--group", default="posterior", help="group of the file (posterior)")
    add("--item-dim", metavar="DIM", help="dimension of the items")
    add("--seed", type=int, default=0, help="seed of the search (0)")
    add("--report", type=Path, metavar="FILE.html", help="write a report with figures")
    add("--figure", type=Path, metavar="FILE", help="write the four-panel figure, as PNG, PDF or SVG by its suffix")
    add("--output", type=Path, metavar="FILE.nc", help="write the posterior with the results in a group 'consensus'")
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--quiet", action="store_true", help="show no progress")
    add("--version", action="version", version=posterior_consensus.__version__)
    return parser


def _summary(options: argparse.Namespace) -> Summary:
    return posterior_consensus.summarize(
        options.posterior,
        options.var,
        loss=options.loss,
        method=options.method,
        n_clusters=options.n_clusters,
        prob=options.prob,
        group=options.group,
        item_dim=options.item_dim,
        random_seed=options.seed,
        progressbar=not (options.quiet or options.json),
        **({} if options.seconds is None else {"seconds": options.seconds}),
    )


def _check_files(options: argparse.Namespace) -> None:
    """Complain before the work, not after it, of files that cannot be written."""
    for name in ("report", "figure", "output"):
        path = getattr(options, name)
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise ValueError(f"--{name} must be a file in a directory that exists; got {str(path)!r}.")
    if options.output is not None and options.output.suffix == ".zarr":
        raise ValueError(f"--output writes NetCDF, which {str(options.output)!r} would not be; attach() gives Zarr.")
    if options.output is not None and options.output.resolve() == options.posterior.resolve():
        raise ValueError(f"--output must be another file than the posterior's; got {str(options.output)!r}.")


def _write_posterior(options: argparse.Namespace, summary: Summary) -> None:
    from posterior_consensus.groups import open_tree

    with open_tree(options.posterior) as tree:
        posterior_consensus.attach(tree.load(), summary).to_netcdf(options.output, engine="h5netcdf")


def as_json(summary: Summary) -> dict[str, Any]:
    """What the summary found, as JSON holds it: NaN and infinity become null."""
    best, ball, diagnosis = summary.consensus, summary.ball, summary.diagnosis
    dim = summary.draws.item_dim
    names = best.labels[dim].values.tolist() if dim in best.labels.coords else range(best.labels.size)
    items = zip(names, best.labels.values.tolist(), summary.items.probability.values.tolist(), strict=True)
    table: dict[str, Any] = {
        "source": summary.source,
        "n_draws": summary.draws.n_draws,
        "n_chains": len(summary.draws.chains),
        "n_items": summary.draws.n_items,
        "n_clusters": best.n_clusters,
        "loss": best.loss.name,
        "unit": best.loss.unit,
        "expected_loss": best.expected_loss,
        "mcse": best.mcse,
        "lower_bound": summary.certificate.lower_bound if summary.certificate else None,
        "optimality": summary.certificate.status if summary.certificate else None,
        "ball": {"prob": ball.prob, "radius": ball.radius, "loss": ball.loss.name, "coverage": ball.coverage},
        "items": [{"item": str(one), "cluster": k, "probability": p} for one, k, p in items],
        "chains": {
            "status": diagnosis.status,
            "verdict": diagnosis.verdict,
            "worst_rhat": diagnosis.worst_rhat,
            "least_ess": diagnosis.least_ess,
            "largest_gap": diagnosis.gap.size,
        },
        "findings": summary.findings(),
        "seconds": summary.seconds,
    }
    return _finite(table)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
