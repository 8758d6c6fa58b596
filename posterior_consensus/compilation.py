"""Kernels compiled beforehand: each phase of an analysis is called on tiny posteriors.

Phases run in as many processes as there are processors. A kernel is compiled in one of them at a time, and the others
find it on disk.
"""

import logging
import os
import py_compile
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import posterior_consensus as pc
from posterior_consensus import agreement, diagnostics, experts, priors
from posterior_consensus.consensus.refinement import refine_partition
from posterior_consensus.ensemble.draws import PairSource, PartitionDraws
from posterior_consensus.kernels._cache import compile_in_turns, n_compiled
from posterior_consensus.runtime import memory
from posterior_consensus.runtime.aliases import Integers
from posterior_consensus.runtime.executor import n_threads
from posterior_consensus.runtime.progress import track

_QUIET: dict[str, Any] = {"random_seed": 1, "progressbar": False}


def _few() -> Integers:
    """Draws (chain, draw, item) of few clusters, whose labels are bytes."""
    rng = np.random.default_rng(1)
    shape = 2, 30, 40
    return np.where(rng.random(shape) < 0.3, rng.integers(4, size=shape), np.arange(40) % 4)


def _many() -> Integers:
    """Draws (draw, item) of some 300 small clusters, whose labels are of two bytes and whose tables are sparse."""
    rng = np.random.default_rng(1)
    truth, alone = np.arange(600) // 2, np.arange(600, 1200)
    return np.array([np.where(rng.random(600) < 0.1, alone, truth) for _ in range(20)])


def _soft() -> PartitionDraws:
    """Draws with allocation probabilities."""
    odds = np.random.default_rng(1).gamma(0.3, size=(40, 40, 4))
    return pc.as_allocation_probabilities(odds / odds.sum(axis=-1, keepdims=True))


def _scored() -> PairSource:
    """Scored pairs whose components are enumerated, bounded, or searched thoroughly."""
    rng = np.random.default_rng(1)
    values = np.triu(rng.random((60, 60)), 1)
    values[:20, 20:] = 0.0
    return pc.as_pair_similarity(sparse.csr_array(values + values.T))


def _linked() -> PairSource:
    """Scored pairs of records in a row, whose components are small."""
    scores = np.random.default_rng(1).random(29)
    return pc.as_pair_similarity(sparse.coo_array((scores, (np.arange(29), np.arange(1, 30))), (30, 30)))


def _searches_by_loss() -> None:
    for loss in pc.LOSSES:
        pc.consensus_partition(_few(), loss=loss, **_QUIET)


def _searches_of_many() -> None:
    for n_clusters in (None, 250):
        pc.consensus_partition(_many(), n_clusters=n_clusters, **_QUIET)


def _searches_of_pairs() -> None:
    for n_clusters in (None, 6):
        pc.consensus_partition(_soft(), loss="binder", n_clusters=n_clusters, **_QUIET)
    pc.consensus_partition(_scored(), **_QUIET)


def _summaries() -> None:
    for posterior in (_few(), _soft(), _many(), _linked()):
        pc.summarize(posterior, **_QUIET).findings()


def _first_steps() -> None:
    """What README does first, for all its kinds of data, with the modules that it imports."""
    cells = pc.load_example("cells")
    summary = pc.summarize(pc.load_example("galaxies"), **_QUIET)
    pc.compare_layers(pc.as_runs(cells, "leiden_*", groups="leiden_{}_*"), **_QUIET)
    pc.summarize(pc.as_runs(cells, "leiden_0.6_*"), **_QUIET)
    pc.summarize(pc.as_pair_similarity(pc.load_example("pairs")), **_QUIET)
    if find_spec("matplotlib"):
        summary.plot()


def _bounds() -> None:
    best = pc.consensus_partition(_few(), **_QUIET)
    for loss in ("vi", "binder"):
        pc.certify(_few(), best, loss=loss, seconds=1.0, progressbar=False)
    one = np.zeros(_few().shape[-1], np.int32)  # in which sets cost less than their items' shares
    pc.certify(_few(), one, loss="vi", seconds=1.0, progressbar=False)


def _methods() -> None:
    for draws, n_clusters in ((_few(), 4), (_many(), 300)):
        for method in ("align_and_vote", "kcc"):
            pc.consensus_partition(draws, method=method, n_clusters=n_clusters, **_QUIET)
    for draws in (_few(), _many()):
        refine_partition(draws, draws.reshape(-1, draws.shape[-1])[0], order="gauss-seidel")
    for method in ("boem", "rpm_em", "greedy"):
        pc.consensus_partition(_few(), method=method, n_clusters=3, **_QUIET)


def _answers() -> None:
    draws = _few()
    best = pc.consensus_partition(draws, **_QUIET)
    pc.partial_partition(draws, **_QUIET)
    pc.membership(draws, best)
    pc.compare_layers({"one": draws, "other": draws}, **_QUIET)
    pc.compare_layers(pc.as_runs(draws[0, :6], groups=[0, 0, 0, 1, 1, 1]), **_QUIET)
    parts = np.where(np.random.default_rng(1).random(draws[0].shape) < 0.2, -1, draws[0])
    pc.summarize(pc.as_runs(parts, missing=-1), **_QUIET)
    pc.particles(draws, 3, **_QUIET)
    pc.partition_density(draws, random_seed=1)
    pc.cluster_merges(draws, best, progressbar=False)
    pc.loss_by_n_clusters(draws, n_clusters=[2, 3], **_QUIET)
    one, other = [0, 2, 0], [1, 3, 2]  # two clusters, and a pair between them
    table = sparse.coo_array(([0.9, 0.9, 0.4] * 2, (one + other, other + one)), (4, 4)).tocsr()
    pc.links(pc.as_pair_similarity(table), [0, 0, 1, 1]).review()


def _similarities() -> None:
    for draws in (_few(), _many()):
        weighted = pc.as_partition_draws(draws, weights=np.arange(1.0, draws[..., 0].size + 1))
        for given in (pc.as_partition_draws(draws), weighted):
            pc.posterior_similarity_matrix(given)
            pc.posterior_similarity_matrix(given, threshold=0.5)
            pc.posterior_similarity_matrix(given, nearest=3)
        pc.item_embedding(draws)


def _diagnostics() -> None:
    for draws in (_few(), _many()):
        diagnostics.similarity_mcse(draws)
        for loss in ("vi", "nid"):
            diagnostics.sequential_distances(draws, loss=loss)


def _tables_and_experts() -> None:
    table = np.random.default_rng(1).integers(9, size=(12, 10))
    agreement.cocluster(table, n_row_clusters=2, n_column_clusters=2, n_clusterings=3, **_QUIET)
    agreement.agreement_path([_few()[0], _few()[1]], **_QUIET)
    said = {"Ann": np.arange(12) % 2, "Bob": np.arange(12) % 3}
    experts.expert_views(said, n_clusters=2, max_views=2, n_starts=2, **_QUIET)
    priors.crp(1.0).n_clusters(20)
    priors.stick_breaking(1.0, 5).n_clusters(20)


def _labels_in_blocks() -> None:
    """What reads labels on disk that memory does not hold; it has little in this process from here on."""
    for draws, budget in ((_few(), "9KB"), (_many(), "90KB")):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows removes no mapped file
            stored = pc.as_partition_draws(draws, store=Path(folder) / "store", progressbar=False)
            os.environ[memory.VARIABLE] = budget
            best = stored.labels[0]
            pc.credible_ball(stored, best)
            pc.item_uncertainty(stored, best)
            pc.diagnose(stored, best)
            diagnostics.sequential_distances(stored)


def _scarce_memory() -> None:
    """What goes another way where memory is scarce, as it is in this process from here on."""
    for labels, budget in ((_few(), "2KB"), (_many(), "32KB")):
        os.environ[memory.VARIABLE] = budget
        draws = pc.as_partition_draws(labels)
        pc.item_uncertainty(draws, draws.labels[0])


_PHASES = (  # the longest first; last the phases after which a process has little memory left
    _searches_by_loss,
    _searches_of_many,
    _bounds,
    _methods,
    _searches_of_pairs,
    _summaries,
    _first_steps,
    _answers,
    _similarities,
    _tables_and_experts,
    _diagnostics,
    _labels_in_blocks,
    _scarce_memory,
)


def compile_all() -> int:
    """Compile what the phases call and is not on disk, kernels and modules, and return the number of kernels.

    Progress is told on standard error, in lines where it is no terminal.

    Raises OSError if a kernel cannot be kept on disk.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(n_threads(), get_context("spawn"), _begin, (folder,)) as pool,
    ):
        try:
            phases = [pool.submit(_compile_for, phase) for phase in _PHASES]
            n_kernels = 0
            for number, phase in enumerate(track(phases, "Compiling kernels", progressbar=True), 1):
                n_kernels += phase.result()
                if not sys.stdout.isatty():
                    sys.stderr.write(f"Compiling kernels: {number} of {len(phases)} parts\n")
            return n_kernels
        except BaseException:
            for process in active_children():
                process.terminate()
            raise


def _begin(folder: str) -> None:
    compile_in_turns(folder)
    warnings.simplefilter("ignore")
    logging.disable()


def _compile_for(phase: Callable[[], None]) -> int:
    before = n_compiled()
    phase()
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.cached is not None and not Path(spec.cached).exists():
            with suppress(OSError):  # in a folder of others
                py_compile.compile(spec.origin, quiet=2)
    return n_compiled() - before
