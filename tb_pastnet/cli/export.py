"""`export`: the tables of `pastnet.read` as files in a new directory."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from tb_pastnet.cli.text import printable, size_of
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument, UnwritableLog
from tb_pastnet.format.files import is_remote, located
from tb_pastnet.reader.log import Log, Run, runs_alone
from tb_pastnet.reader.tables import Column, Columns, Labels, csv_pieces, labels, occurring

SCHEMA = 1
MANIFEST = "manifest.json"

_LONGEST = 40


class Table(NamedTuple):
    """A table."""

    kind: str  # one of "runs", "layers", "violations", "function", "channels"
    columns: Columns
    run: str | None = None  # its run, None in the table of all runs
    layer: str | None = None  # its layer, None if it isn't about one
    variable: str | None = None  # its variable, None if it isn't about one


def export(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    """Writes tables of a log. A new directory appears complete, or not at all.

    Returns 0, or 1 if a run could not be read: it is left out.
    """
    write, folder = writer_of(options.format), local(options.out)
    runs = Log(options.logdir, options.progress).runs.chosen(options.run)
    for name in options.layer or ():
        if runs and all(run.layers.get(name) is None for run in runs):
            runs[0].layers[name]  # raises UnknownName
    target = Path(folder)
    exists = target.is_dir()
    hidden = (target if exists else target.parent) / f".pastnet-export-{secrets.token_hex(8)}"
    try:
        if target.exists() and (not exists or any(target.iterdir())):
            found = "one that isn't empty" if exists else "a file"
            raise UnwritableLog(
                f"Could not export to {folder!r}: expected a new or an empty directory, got "
                f"{found}. Choose another, or remove it."
            )
        hidden.mkdir(parents=True)
        entries, problems = _Tables(hidden, write, options).write(runs)
        manifest: dict[str, Any] = {"schema": SCHEMA, "format": options.format, "tables": entries}
        manifest |= {"problems": problems} if problems else {}
        (hidden / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "ascii")
        size = sum(file.stat().st_size for file in hidden.rglob("*") if file.is_file())
        if exists:  # it may be a link, a mount, or where the user stands: it stays
            for file in hidden.iterdir():
                file.rename(target / file.name)
        else:
            hidden.rename(target)
    except UnwritableLog:
        raise
    except OSError as problem:
        raise _unwritable(folder, problem) from problem
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    rows = sum(entry["rows"] for entry in entries)
    said = f"{counted(len(entries), 'table')}, {counted(rows, 'row')}, {size_of(size)}"
    out.write(f"{printable(folder)}: {said}; {MANIFEST} describes each file\n")
    return write_problems(problems, error)


def write_problems(problems: Mapping[str, str], error: TextIO) -> int:
    """Prints which runs were left out, and returns the exit code."""
    error.writelines(f"left out: {printable(run)}: {text}\n" for run, text in problems.items())
    return int(bool(problems))


def local(out: str) -> str:
    """The path that is exported to; raises UnwritableLog for one in a store."""
    path = located(out)
    if is_remote(path):
        raise UnwritableLog(
            f"Could not export to {out!r}: expected a path of this machine, got one in a store. "
            "Export to a local one, and copy it."
        )
    return path


class _Tables:
    """Writes tables below a folder."""

    def __init__(
        self, folder: Path, write: Callable[[Path, Columns], None], options: argparse.Namespace
    ) -> None:
        self._folder, self._write, self._options = folder, write, options

    def write(self, runs: Sequence[Run]) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Writes the tables of all runs.

        Returns their entries for the manifest, and why runs could not be read.
        """
        passed = (UnwritableLog,)
        entries = []
        problems: dict[str, str] = {}
        if "runs" in self._options.tables:
            entries += runs_alone(runs, lambda runs: [self._one("", runs_table(runs))], passed)
        for number, run in enumerate(runs, 1):
            place = f"{number:04}-{safe(run.name)}"
            entries += runs_alone([run], partial(self._of_run, place, problems), passed)
        return entries, problems

    def _of_run(
        self, place: str, problems: dict[str, str], runs: Sequence[Run]
    ) -> list[dict[str, Any]]:
        [run] = runs
        if run.problem:
            problems[run.name] = run.problem
            shutil.rmtree(self._folder / place, ignore_errors=True)
            return []
        variables = count(1)
        return [
            self._one(place, table, 0 if table.variable is None else next(variables))
            for table in self._tables(run)
        ]

    def _tables(self, run: Run) -> Iterator[Table]:
        kinds, threshold = self._options.tables, self._options.threshold
        if "layers" in kinds:
            yield Table("layers", run.overview(threshold).columns(), run.name)
        if "violations" in kinds:
            yield violations_table(run)
        if "function" in kinds and run.function.places:
            yield Table("function", run.function.columns(), run.name)
        if "channels" in kinds:
            tables = channels_tables(run, self._options.layer, threshold)
            text = f"Writing {run.name}"
            yield from self._options.progress(tables, text, len(run.variables))

    def _one(self, place: str, table: Table, number: int = 0) -> dict[str, Any]:
        """Writes a table and returns its entry; `number` is that of a variable's table."""
        form = self._options.format
        name = table.kind if table.variable is None else f"{number:05}-{safe(table.variable)}"
        path = Path(place, f"{name}.{form}")
        try:
            (self._folder / place).mkdir(exist_ok=True)
            self._write(self._folder / path, table.columns)
        except OSError as error:  # of the disk; data don't raise it here
            raise _unwritable(self._options.out, error) from error
        return _entry(path, table, form)


def _unwritable(folder: str, error: OSError) -> UnwritableLog:
    return UnwritableLog(
        f"Could not export to {folder!r}: expected a directory that can be written, got "
        f"{error.strerror or error}. Choose another, or make room."
    )


def _entry(path: Path, table: Table, form: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "file": path.as_posix(),
        "table": table.kind,
        "run": table.run,
        "layer": table.layer,
        "variable": table.variable,
        "rows": len(next(iter(table.columns.values()))),
        "columns": list(table.columns),
    }
    if form == "npz":
        entry["labels"] = {
            name: list(column.names)
            for name, column in table.columns.items()
            if isinstance(column, Labels)
        }
    return entry


def safe(name: str) -> str:
    """The part of a name that is safe in a file name, after a number that keeps names distinct."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name[:_LONGEST]).strip("_") or "_"


def runs_table(runs: Sequence[Run]) -> Table:
    """One row per run: its state, and its account of records."""
    spans = [run.steps for run in runs]
    accounts = [asdict(run.account) for run in runs]
    columns: dict[str, Column] = {
        "run": labels([run.name for run in runs]),
        "source": labels([run.source for run in runs]),
        "past": labels([run.past for run in runs]),
        "origin": labels([run.origin for run in runs]),
        "closed": np.array([run.closed for run in runs], bool),
        "lineages": np.array([len(run.lineages) for run in runs], np.int64),
        "records": np.array([len(steps) for steps in spans], np.int64),
        "first_step": np.array([steps[0] if len(steps) else np.nan for steps in spans], np.float64),
        "last_step": np.array([steps[-1] if len(steps) else np.nan for steps in spans], np.float64),
    }
    for name in ("offered", "shown", "superseded", "thinned", "dropped", "unreadable"):
        columns[name] = np.array([account[name] for account in accounts], np.int64)
    return Table("runs", columns)


def violations_table(run: Run) -> Table:
    """One row for each violation: channel and first step."""
    rows = [vars(violation) for violation in run.violations]
    columns: dict[str, Column] = {
        name: labels([row[name] for row in rows]) for name in ("layer", "variable", "cause")
    }
    for name in ("channel", "first_step", "last_step", "elements", "held", "largest"):
        # Fingerprints don't show how many elements, or how far: NaN.
        kind = np.float64 if name in ("elements", "largest") else np.int64
        columns[name] = np.array([row[name] for row in rows], kind)
    return Table("violations", columns, run.name)


def channels_tables(run: Run, layers: Sequence[str] | None, threshold: float) -> Iterator[Table]:
    """For each variable one row per record and channel; one variable at a time is in memory.

    A variable that two layers share has one table. Layers that the run doesn't have are left out.
    """
    found = map(run.layers.get, run.layers if layers is None else layers)
    chosen = [layer.id for layer in found if layer is not None]
    seen = set()
    for layer in chosen:
        for variable in run.layers[layer].variables.values():
            if variable.id not in seen:
                seen.add(variable.id)
                columns = {
                    name: occurring(column) if isinstance(column, Labels) else column
                    for name, column in variable.columns(threshold).items()
                }
                yield Table("channels", columns, run.name, layer, variable.id)


def write_csv(path: Path, columns: Columns) -> None:
    """Writes CSV in UTF-8. Numbers read back exactly; NaN is empty."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        file.writelines(csv_pieces([columns]))


def write_npz(path: Path, columns: Columns) -> None:
    """Writes NPZ, one array per column. Texts are numbers of names, which the manifest has."""
    arrays: dict[str, Any] = {
        name: column.codes if isinstance(column, Labels) else column
        for name, column in columns.items()
    }
    np.savez_compressed(path, **arrays)


def write_parquet(path: Path, columns: Columns) -> None:
    """Writes Parquet; texts are dictionary-encoded."""
    arrow, parquet = _arrow()

    def array(column: Column) -> Any:
        if not isinstance(column, Labels):
            return arrow.array(column)
        names = [name.encode("utf-8", "replace").decode("utf-8") for name in column.names]
        return arrow.DictionaryArray.from_arrays(column.codes, arrow.array(names, arrow.string()))

    arrays = {name: array(column) for name, column in columns.items()}
    parquet.write_table(arrow.table(arrays), path)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise InvalidArgument(
            "Could not export Parquet: expected pyarrow to be installed, got none. "
            'Run: pip install "tb-pastnet[parquet]", or export csv or npz.'
        ) from error
    return pyarrow, pyarrow.parquet


def writer_of(form: str) -> Callable[[Path, Columns], None]:
    """The function that writes a format: "csv", "parquet" or "npz"."""
    if form == "parquet":
        _arrow()
    return {"csv": write_csv, "npz": write_npz, "parquet": write_parquet}[form]
