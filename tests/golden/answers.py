"""What users are shown of the kept logs, as digests: what has to stay when the inside is rebuilt.

`python -m tests.golden.answers` writes `answers.json` anew, after a change that users shall see;
`--bodies FOLDER` writes there what the digests are of, to compare two states of the code by `diff`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import numpy as np

import tb_pastnet as pastnet
from tests.commands import command
from tests.contract.test_command_export_html import answers_in
from tests.golden.kept_logs import FOLDER, LOGS
from tests.tensorboards import LOADERS, Board, board

KEPT = Path(__file__).with_name("answers.json")
TERMINAL = {"COLUMNS": "100", "LINES": "40"}
BOTH = ("sample", "restarts", "mixed", "damaged")
"""Logs that TensorBoard's fast loader reads, too: it starts a process each time."""

Answers = dict[str, bytes]


def all_answers() -> Answers:
    """Everything about every log: by log, door and question."""
    found: Answers = {}
    with mock.patch.dict(os.environ, TERMINAL):
        for name in LOGS:
            logdir = FOLDER / name
            for door, ask in DOORS.items():
                if door == LOADERS[1] and name not in BOTH:
                    continue
                found |= {f"{name} {door} {key}": body for key, body in ask(logdir)}
    return found


def served(loader: str) -> Callable[[Path], Iterator[tuple[str, bytes]]]:
    """The routes' answers about a log that one of TensorBoard's loaders reads."""

    def ask(logdir: Path) -> Iterator[tuple[str, bytes]]:
        with board(logdir, loader) as here:
            for route, query in _questions(here.json("/index")):
                yield f"{route}?{urlencode(query, doseq=True)}", _response(here, route, query)

    return ask


def _response(here: Board, route: str, query: Mapping[str, Any]) -> bytes:
    answer = here.get(route, **query)
    named = answer.headers.get("Content-Disposition", "")
    return f"{answer.status_code} {answer.mimetype} {named}\n".encode() + answer.get_data()


def _questions(index: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each route about each run, layer and weight, and some that can't be answered."""
    names = [run["name"] for run in index["runs"]]
    yield "/index", {}
    yield "/findings", {"run": names}
    for run in index["runs"]:
        yield from _of_run(run, index["networks"][run["network"]]["layers"])
    for route in ("/overview", "/layer", "/overlap", "/export.csv"):
        yield route, {}
        yield route, {"run": "none", "layer": "none"}
        yield route, {"run": names, "cols": "x", "th": -1}
    if len(names) > 1:
        yield from _of_pairs(names[0], names[1:])


def _of_run(run: dict[str, Any], layers: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    own = {"run": run["name"]}
    first, last = run["first_step"] or 0, run["last_step"] or 0
    for more in ({}, {"cols": 7, "th": 0.01}, {"cols": 5, "first": first + 3, "last": last - 2}):
        yield "/overview", {**own, **more}
    yield "/overview", {**own, "cols": 1, "first": last, "last": last}
    yield "/records", own
    yield "/records", {**own, "at": (first + last) // 2, "count": 3, "th": 0}
    yield from ((route, own) for route in ("/violations", "/findings", "/function", "/export.csv"))
    yield "/export.csv", {**own, "function": 1}
    for layer in layers:
        main = {**own, "layer": layer["id"]}
        yield "/layer", {**main, "since": (first + last) // 2}
        yield "/export.csv", main
        for variable in layer["variables"]:
            part = {**main, "variable": variable["id"]}
            yield "/layer", {**part, "th": 0.01}
            for channel in sorted({0, variable["channels"] - 1, variable["channels"]}):
                yield "/channel", {**part, "channel": channel}
            yield "/export.csv", {**part, "channel": 0}


def _of_pairs(run: str, others: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for unit in ("weights", "channels"):
        for mask in ("kept", "trainable"):
            kind = {"unit": unit, "mask": mask}
            yield "/overlap", {"run": [run, *others], **kind}
            yield "/overlap", {"run": [run, *others], "step": 9, "layer": "conv1", **kind}
            for other in others:
                yield "/overlap_layers", {"run": run, "other": other, "cols": 9, **kind}
                yield "/overlap_layers", {"run": other, "other": run, "at": 9, **kind}


def read(logdir: Path) -> Iterator[tuple[str, bytes]]:
    """What `pastnet.read` gives: every public attribute, and what the methods return."""
    log = pastnet.read(logdir)
    yield "warnings", _text(log.warnings)
    yield "findings", _text(log.findings())
    for name, run in log.runs.items():
        yield f"run {name}", _text(_attributes(run, "layers", "variables", "function"))
        yield f"run {name} notes", _text([run.findings(), dict(run.notes), repr(run)])
        yield f"run {name} overview", _text(_attributes(run.overview()))
        yield f"run {name} overview 0.01 4", _text(_attributes(run.overview(0.01, 4)))
        yield f"run {name} function", _text(_attributes(run.function))
        yield f"run {name} frames", b"".join(_frames(run))
        for id_, layer in run.layers.items():
            told = [layer.group, layer.name, layer.type, layer.variable, list(layer.variables)]
            yield f"run {name} layer {id_}", _text([*told, repr(layer)])
        for id_, weight in run.variables.items():
            yield f"run {name} weight {id_}", _text(_attributes(weight))
            states = [weight.states(), weight.states(0.01), dict(weight.notes), repr(weight)]
            yield f"run {name} weight {id_} states", _text(states)
            steps = [None, 0, *weight.steps[::7].tolist()]
            masks = [_attributes(weight.masks(step)) for step in steps]
            yield f"run {name} weight {id_} masks", _text(masks)


def _frames(run: Any) -> Iterator[bytes]:
    tables = [run, run.function, *run.layers.values()]
    for frame in (table.to_dataframe() for table in tables):
        yield _text({column: frame[column].tolist() for column in frame.columns})


def _attributes(thing: Any, *apart: str) -> dict[str, Any]:
    """Public attributes by name; those `apart` are asked for themselves."""
    names = [name for name in dir(type(thing)) if isinstance(getattr(type(thing), name), property)]
    names += list(vars(thing)) if hasattr(thing, "__dict__") else []
    if is_dataclass(thing):
        names += [field.name for field in fields(thing)]
    public = {name for name in names if not name.startswith("_") and name not in apart}
    return {name: getattr(thing, name) for name in sorted(public)}


def _text(value: Any) -> bytes:
    """A value as JSON; floats as their shortest text, which tells each bit but of a NaN."""
    return json.dumps(value, default=_plain, ensure_ascii=False).encode()


def _plain(value: Any) -> Any:
    """What JSON doesn't know."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.ravel().tolist()]
    if isinstance(value, Mapping):
        return dict(value)
    return _attributes(value) if is_dataclass(value) else repr(value)


def commanded(logdir: Path) -> Iterator[tuple[str, bytes]]:
    """What the command line says and writes."""
    every = "violations,stalled,unreadable,dropped,nonfinite,unfinished"
    for asked in (
        ["check"], ["check", "--json"], ["report"], ["report", "--json", "--threshold", "0.01"],
        ["report", "--fail-on", every], ["report", "--run", "none"],
    ):  # fmt: skip
        done = command(asked[0], logdir, *asked[1:])
        said = f"{done.code}\n{done.out}\n{done.error}".replace(str(logdir), "LOGDIR")
        yield " ".join(asked), said.encode()
    yield from _exported(logdir, "csv", "runs,layers,violations,function,channels")
    yield from _exported(logdir, "npz", "layers,violations")
    if logdir.name == "sample":
        yield from _html(logdir)


def _html(logdir: Path) -> Iterator[tuple[str, bytes]]:
    """The answers in the one file; not the page, which is built apart."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.html")
        command("export", logdir, out, "--format", "html", "--threshold", "0.01")
        yield from (
            (f"export html {key}", body) for key, body in answers_in(out.read_text()).items()
        )


def _exported(logdir: Path, form: str, tables: str) -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        done = command("export", logdir, out, "--format", form, "--tables", tables)
        said = f"{done.code}\n{done.out}\n{done.error}".replace(folder, "FOLDER")
        yield f"export {form}", said.replace(str(logdir), "LOGDIR").encode()
        for path in sorted(path for path in out.rglob("*") if path.is_file()):
            body = path.read_bytes()
            if form == "npz" and path.suffix == ".npz":
                with np.load(path, allow_pickle=False) as arrays:
                    body = _text({name: arrays[name] for name in arrays.files})
            body = body.replace(str(logdir).encode(), b"LOGDIR")
            yield f"export {form} {path.relative_to(out).as_posix()}", body


DOORS: dict[str, Callable[[Path], Iterator[tuple[str, bytes]]]] = {
    **{loader: served(loader) for loader in LOADERS},
    "read": read,
    "command": commanded,
}


def digests(answers: Answers) -> dict[str, str]:
    """A digest of each. Where both loaders answer the same, only the first is kept."""
    found = {}
    for key, body in answers.items():
        log, door, question = key.split(" ", 2)
        if door == LOADERS[1] and answers.get(f"{log} {LOADERS[0]} {question}") == body:
            continue
        found[key] = hashlib.sha256(body).hexdigest()[:16]
    return found


def kept() -> dict[str, str]:
    return dict(json.loads(KEPT.read_text("utf-8")))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.answers")
    parser.add_argument("--bodies", type=Path, help="a folder for what the digests are of")
    into = parser.parse_args(arguments).bodies
    answers = all_answers()
    if into is None:
        KEPT.write_text(json.dumps(digests(answers), indent=0, ensure_ascii=False) + "\n", "utf-8")
        return
    for key, body in answers.items():
        log, door, _ = key.split(" ", 2)
        path = into / log / door / hashlib.sha256(key.encode()).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(key.encode() + b"\n" + body)


if __name__ == "__main__":
    main(sys.argv[1:])
