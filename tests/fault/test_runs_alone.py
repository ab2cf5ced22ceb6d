"""One run of three whose data make our own functions raise: the answers about the others are equal, bit for bit.

Each function below index, report, export and read that works on data of that run alone raises, each
time it is called for that run, at its beginning or at its end.
"""

from __future__ import annotations

import functools
import gzip
import inspect
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, MappingProxyType
from typing import Any, ClassVar
from unittest import mock

import pytest
from werkzeug.datastructures import MultiDict

import tb_pastnet as pastnet
from tb_pastnet.cli import html_file
from tb_pastnet.cli.export import write_csv
from tb_pastnet.cli.main import main
from tb_pastnet.reader import isolation, threads
from tb_pastnet.reader.cache import Cache
from tb_pastnet.reader.file_source import FileSource
from tb_pastnet.reader.log import Log, Run
from tb_pastnet.reader.notes import UNREAD
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.answers import NotModified
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.http.web import Failure
from tb_pastnet.serve.routes import ROUTES
from tests.contract.test_command_export_html import answers_in
from tests.fault.injected import OURS, Injector, Point, _text
from tests.golden.kept_logs import FOLDER

pytestmark = pytest.mark.promise("runs_alone")

RUNS = "run-one", "run-two", "run-six"
BAD, OTHERS = RUNS[1], (RUNS[0], RUNS[2])
ERRORS = RuntimeError, MemoryError, OSError, KeyError, OverflowError, RecursionError
PARTS = 24
"""Into as many tests the functions are dealt."""

SHARED = (Store, FileSource, Cache, Log)
"""What holds all runs."""
GUARD = "isolation.py"
"""Where errors end."""
AROUND = {
    *("emptied", "unread_run", "run_alone", "runs_alone", "made"),
    *("named", "fresh", "kept", "_put", "cache.py:find", "cache.py:get", "cache.py:get_each"),
    *("file_size", "check.py:_entry"),
    *("_list", "_walk", "find_runs", "parse_run", "_of_one", "__fspath__"),
    *("reader", "_reader"),
}
"""What makes the empty run, keeps answers that were made, lists files, and holds a run to be read.

Also what is called by these, as their comprehensions are.
"""


class OneRun(Injector):
    """Raises in a function each time that it works for the run, but not for an empty one."""

    codes: ClassVar[dict[int, tuple[str, CodeType]]] = {}
    """Functions of ours, by the id of their code: its hash would take longer than most of them.

    `counts` has those that were called for the run.
    """

    def aim(self, point: Point | None, error: type[BaseException] = RuntimeError) -> None:
        super().aim(point, error)
        aimed = None if point is None else point.function
        self._aimed = {number for number, (name, _) in self.codes.items() if name == aimed}

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        code, point = frame.f_code, self._point
        if point is None:
            if code.co_filename.startswith(OURS) and not code.co_flags & inspect.CO_GENERATOR:
                if id(code) not in self.codes:
                    self.codes[id(code)] = f"{_text(code)}:{code.co_firstlineno}", code
                name, _ = self.codes[id(code)]
                if name not in self.counts and not _around(frame) and _of_run(frame):
                    self.counts[name] = 1
        elif id(code) in self._aimed and not _around(frame) and _of_run(frame):
            if point.event == "call":
                self._raise()
            frame.f_trace_lines = False
            return self._at_end
        return None

    def _raise(self) -> None:
        if self._error is OSError and _writes(sys._getframe(1)):
            self._error = RuntimeError  # where a file is written, that would be the disk's
        super()._raise()

    def _at_end(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self._raise()
        return self._at_end


def _writes(frame: FrameType | None) -> bool:
    """Whether a table is being written."""
    while frame is not None and frame.f_code is not write_csv.__code__:
        frame = frame.f_back
    return frame is not None


def _around(frame: FrameType) -> bool:
    code, by = frame.f_code, frame.f_back
    own = {
        name for each in (code, by and by.f_code) if each for name in (each.co_name, _text(each))
    }
    return code.co_filename.endswith(GUARD) or not AROUND.isdisjoint(own)


def _of_run(frame: FrameType | None) -> bool:
    """Whether the nearest call whose arguments are of any run is one of the bad run alone."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename == __file__:
            return False
        count = code.co_argcount + code.co_kwonlyargcount
        own = {*code.co_varnames[:count], *code.co_freevars}
        found = set().union(*(_runs_in(v) for k, v in frame.f_locals.items() if k in own))
        if found:
            return found == {BAD}
        frame = frame.f_back
    return False


def _runs_in(value: Any, depth: int = 4) -> set[str]:
    """The runs that a value is about. A name alone says nothing: it is shown with the note."""
    if isinstance(value, str | bytes | Path):
        text = os.fsdecode(value)
        if UNREAD in text:
            return {"empty"}
        return {run for run in RUNS if f"{run}/" in text}
    if depth == 0 or isinstance(value, SHARED):
        return set()
    if getattr(value, "problem", "") or getattr(getattr(value, "run", ""), "problem", ""):
        return {"empty"}
    parts: Iterator[Any] = iter(())
    if isinstance(value, dict | MappingProxyType):
        parts = islice((part for item in value.items() for part in item), 16)
    elif isinstance(value, list | tuple | set | frozenset):
        parts = islice(iter(value), 8)
    elif type(value).__module__.startswith("tb_pastnet"):
        parts = iter([*getattr(value, "__dict__", {}).values()])
        named = getattr(value, "name", None)
        if isinstance(named, str) and _name(named) in RUNS:
            return {_name(named)}
    return set().union(*(_runs_in(part, depth - 1) for part in parts))


def _name(text: str) -> str:
    return text.removesuffix(" (summary)")


Door = Callable[[Path, Path], dict[str, bytes]]


def _plain(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=repr).encode()


def routes(root: Path, out: Path) -> dict[str, bytes]:
    """The index, and routes about several runs, of which the bad one is one, or about others."""
    store = Store(FileSource(root), fresh_for=0)

    def ask(route: str, *asked: tuple[str, Any]) -> bytes:
        try:
            answer = ROUTES[route](Query(store, LOCAL, MultiDict(asked)))
        except Failure as failure:
            return f"{failure.status} {failure.message}".encode()
        answer = answer.make() if isinstance(answer, NotModified) else answer
        return gzip.decompress(answer.body) if answer.packed else answer.body

    index = json.loads(ask("/index"))
    everyone = [("run", run) for run in RUNS]
    found = {
        run["name"]: _plain([{**run, "network": 0}, index["networks"][run["network"]]])
        for run in index["runs"]
    }
    findings = json.loads(ask("/findings", *everyone))["findings"]
    found["findings"] = _kinds((each["runs"], each["kind"]) for each in findings)
    overlap = json.loads(ask("/overlap", *everyone))
    found["overlap"] = _plain([overlap["pairs"][1], overlap["runs"][0], overlap["runs"][2]])
    found["records"] = b"".join(_containers(ask("/records", *everyone)))
    first, last = OTHERS
    found["pair"] = ask("/overlap_layers", ("run", first), ("other", last))
    for run, route in ((run, route) for run in RUNS for route in SINGLE):
        found[f"{run} {route}"] = ask(route, ("run", run))
    for run in RUNS:
        ask("/overlap_layers", ("run", run), ("other", first))
    return found


def _kinds(findings: Iterable[tuple[Sequence[str], str]]) -> bytes:
    """The kinds of findings about the other runs: a sentence is about all runs together."""
    told = [*findings]
    return _plain([[kind for runs, kind in told if run in runs] for run in OTHERS])


SINGLE = "/overview", "/violations", "/function", "/export.csv", "/findings"


def _containers(body: bytes) -> list[bytes]:
    """The containers of the other runs."""
    begins = [match.start() - 4 for match in re.finditer(rb'\{"schema"', body)]
    parts = [body[begin:end] for begin, end in zip(begins, [*begins[1:], None], strict=True)]
    return [part for part in parts if BAD.encode() not in part]


def reading(root: Path, out: Path) -> dict[str, bytes]:
    """`pastnet.read`: the log, and each run."""
    log = pastnet.read(root)
    # A folder with two runs has one if no event of the other can be read.
    found = {"names": _plain([name for name in log if BAD not in name])}
    for line in repr(log).splitlines()[1:]:
        if "warning" not in line:  # that a file can't be opened is true
            found[f"line {line}"] = b""
    for row in re.findall(r"<tr>.*?</tr>", log._repr_html_(), re.S):
        found[f"row {row}"] = b""
    found["findings"] = _kinds((each.runs, each.kind) for each in log.findings())
    frame = log.to_dataframe()
    for run in OTHERS:
        found[f"frame {run}"] = frame[frame.run == run].to_csv(index=False).encode()
    overlap = log.overlap(*OTHERS)
    found["overlap"] = _plain([overlap.layers, overlap.overlap, overlap.notes])
    log.overlap(*RUNS[:2])
    for name in RUNS:
        try:
            found |= dict(_of_one(log.runs[name]))
        except Exception:
            assert name.startswith(BAD)
    return found


def _of_one(run: Run) -> Iterator[tuple[str, bytes]]:
    overview = run.overview()
    yield f"{run.name} overview", _plain({k: repr(v) for k, v in overview.columns().items()})
    yield f"{run.name} facts", _plain([run.account, run.notes, run.violations, run.findings()])
    yield f"{run.name} steps", run.steps.tobytes() + run.learning_rates.tobytes()
    yield f"{run.name} html", run._repr_html_().encode()
    yield f"{run.name} sparsity", run.sparsity.tobytes()


def _command(*arguments: Any) -> tuple[int, str]:
    out = io.StringIO()
    code = main([str(argument) for argument in arguments], out, out)
    return code, out.getvalue()


def report(root: Path, out: Path) -> dict[str, bytes]:
    found = {}
    text = _command("report", root, "--fail-on", "dropped")[1]
    for part in re.split(r"^(?=run )", re.split("\nfindings:|failed:", text)[0], flags=re.M):
        found[part.partition("\n")[0]] = part.strip().encode()
    for run in json.loads(_command("report", root, "--json")[1])["runs"]:
        found[f"json {run['name']}"] = _plain(run)
    return found


def check(root: Path, out: Path) -> dict[str, bytes]:
    told = json.loads(_command("check", root, "--json")[1])
    runs = {run["name"]: _plain(run) for run in told["runs"]}
    return runs | {file["file"]: _plain(file) for file in told["files"]}


def export(root: Path, out: Path) -> dict[str, bytes]:
    _command("export", root, out, "--tables", "runs,layers,violations,function,channels")
    found = {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.glob("0*/**/*")
        if path.is_file() and BAD not in str(path)
    }
    for line in (out / "runs.csv").read_text().splitlines():
        found[f"line {line}"] = b""
    return found


def html(root: Path, out: Path) -> dict[str, bytes]:
    with mock.patch.object(html_file, "OVERLAP_STEPS", 1):  # more are the same requests again
        _command("export", root, out, "--format", "html")
    found = answers_in(out.read_text())
    index = json.loads(found.pop("index?"))
    return {
        **{ask: body for ask, body in found.items() if "findings" not in ask},
        **{f"index {run['name']}": _plain({**run, "network": 0}) for run in index["runs"]},
    }


DOORS: tuple[Door, ...] = (routes, reading, report, check, export, html)
LOGS = "a", "b"
"""Of the kept log "mixed": with two lineages, masks, an audit, a probe and a user's own writer; without."""


def log_of(kind: str, root: Path) -> Path:
    """Three runs of one content, so that all can be compared."""
    for run in RUNS:
        shutil.copytree(FOLDER / "mixed" / kind, root / run)
    return root


def others(found: dict[str, bytes]) -> dict[str, bytes]:
    """What isn't about the bad run."""
    return {key: body for key, body in found.items() if BAD not in key}


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> OneRun:
    """In force again after each error that was caught; all is done in this thread."""
    injector, noted = OneRun(), isolation._problem

    def problem(error: BaseException) -> isolation.Problem:
        injector.again()
        return noted(error)

    monkeypatch.setattr(isolation, "_problem", problem)
    monkeypatch.setattr(threads._own, "pool", True, raising=False)
    return injector


@functools.cache
def functions(door: Door, kind: str) -> tuple[str, ...]:
    """Those below a door that work for the run."""
    counting = OneRun()
    with tempfile.TemporaryDirectory() as folder, counting.here():
        door(log_of(kind, Path(folder, "log")), Path(folder, "out"))
    return tuple(sorted(counting.counts))


def raised_in(
    door: Door,
    kind: str,
    chosen: Callable[[Sequence[str]], Sequence[str]],
    tmp: Path,
    injector: OneRun,
) -> int:
    """In how many of the functions below a door it raised for the run."""
    root, raised = log_of(kind, tmp / "log"), 0
    whole = others(door(root, tmp / "whole"))
    for number, function in enumerate(chosen(functions(door, kind))):
        point = Point(function, ("call", "return")[number % 2])
        injector.aim(point, ERRORS[number % len(ERRORS)])
        with injector.here():
            told = others(door(root, tmp / f"out{number}"))
        raised += injector.raised
        assert told == whole, point
    return raised


@pytest.mark.prove
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("door", DOORS)
def test_a_run_that_raises_leaves_the_others_as_they_are(
    door: Door, part: int, tmp_path: Path, injector: OneRun
) -> None:
    kind, step = LOGS[part % len(LOGS)], PARTS * (6 if door is html else 1)  # it asks every route
    assert raised_in(door, kind, lambda names: names[part::step], tmp_path, injector) > 0


@pytest.mark.parametrize("door", DOORS)
def test_so_it_is_in_a_sample_of_functions(door: Door, tmp_path: Path, injector: OneRun) -> None:
    draw, count = random.Random(door.__name__), 2 if door is html else 6
    assert raised_in(door, "b", lambda names: draw.sample(names, count), tmp_path, injector) > 0
