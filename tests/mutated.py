"""What `tests.mutations` adds to pytest: tests note the lines that they reach, and a mutant replaces a file."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

PATIENCE = 180  # seconds of a test
PACKAGE = str(Path(__file__).parents[1] / "posterior_consensus")


class Lines:
    """Notes the lines of the package that each test reaches, and the seconds it takes."""

    def __init__(self, folder: str) -> None:
        self.file = Path(folder) / f"{os.getpid()}.jsonl"  # xdist runs tests in several processes
        self.reached: set[tuple[str, int]] = set()
        self.by_fixture: dict[tuple[str, str], set[tuple[str, int]]] = {}
        self.has_failed = False
        signal.signal(signal.SIGALRM, _give_up)
        sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "lines")
        sys.monitoring.register_callback(sys.monitoring.COVERAGE_ID, sys.monitoring.events.LINE, self.note)
        sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, sys.monitoring.events.LINE)

    def note(self, code, line: int) -> object:
        if code.co_filename.startswith(PACKAGE):
            self.reached.add((code.co_filename, line))
        return sys.monitoring.DISABLE  # until events restart

    def restart(self) -> None:
        self.reached = set()
        sys.monitoring.restart_events()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request) -> Iterator[None]:
        """What a fixture shared by several tests reaches, all of them reach."""
        if fixturedef.scope == "function":
            return (yield)
        before = self.reached
        self.restart()
        try:
            return (yield)
        finally:
            self.by_fixture.setdefault((request.node.nodeid, fixturedef.argname), set()).update(self.reached)
            self.reached = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item) -> Iterator[None]:
        self.restart()
        self.has_failed = False
        began = time.perf_counter()
        signal.alarm(PATIENCE)  # kernels as plain Python may take hours
        result = yield
        signal.alarm(0)
        seconds = time.perf_counter() - began
        above = [(node.nodeid, name) for node in item.listchain() for name in item.fixturenames]
        shared = (self.by_fixture.get(fixture, set()) for fixture in above)
        lines: dict[str, list[int]] = {}
        for file, line in sorted(self.reached.union(*shared)):
            lines.setdefault(file, []).append(line)
        if not self.has_failed:
            # At once: xdist does not wait for what its processes do at the end.
            with self.file.open("a", encoding="utf-8") as file:
                is_slow = item.get_closest_marker("slow") is not None
                name = item.nodeid.rpartition("@")[0] if item.get_closest_marker("xdist_group") else item.nodeid
                note = {"test": name or item.nodeid, "seconds": seconds, "slow": is_slow, "lines": lines}
                file.write(json.dumps(note) + "\n")
        return result

    def pytest_runtest_logreport(self, report) -> None:
        self.has_failed |= report.failed

    def pytest_sessionfinish(self) -> None:
        sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, 0)


def _give_up(number, frame) -> None:
    raise TimeoutError


class Chosen:
    """Runs the given tests alone, in the order given."""

    def __init__(self, names: list[str]) -> None:
        self.place = {name: i for i, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.place), key=lambda x: self.place[x.nodeid])


def put_in(file: str, source: str) -> None:
    """Let a file of the package be imported as this source."""
    get_code = SourceFileLoader.get_code

    def get_mutated(loader, name):
        return compile(source, file, "exec") if loader.path == file else get_code(loader, name)

    SourceFileLoader.get_code = get_mutated


def pytest_configure(config) -> None:
    if "NOTE_LINES_IN" in os.environ:
        config.pluginmanager.register(Lines(os.environ["NOTE_LINES_IN"]))
