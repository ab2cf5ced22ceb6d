"""`export`: the tables of `pastnet.read` as files in a new directory."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from tb_pastnet.cli.text import printable, size_of
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument, UnwritableLog
from tb_pastnet.format.files import is_remote, located
from tb_pastnet.reader.log import Log, Run
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


def export(options: argparse.Namespace, out: TextIO) -> int:
    """Writes tables of a log, and returns 0. A new directory appears complete, or not at all."""
    write, folder = writer_of(options.format), local(options.out)
    runs = Log(options.logdir, options.progress).runs.chosen(options.run)
    for name in options.layer or ():
        if runs and all(run.layers.get(name) is None for run in runs):
            runs[0].layers[name]  # raises UnknownName
    tables = _tables(runs, options)
    target = Path(folder)
    exists = target.is_dir()
    partial = (target if exists else target.parent) / f".pastnet-export-{secrets.token_hex(8)}"
    try:
        if target.exists() and (not exists or any(target.iterdir())):
            found = "one that isn't empty" if exists else "a file"
            raise UnwritableLog(
                f"Could not export to {folder!r}: expected a new or an empty directory, got "
                f"{found}. Choose another, or remove it."
            )
        partial.mkdir(parents=True)
        entries = list(_written(partial, tables, write, options.format))
        manifest = {"schema": SCHEMA, "format": options.format, "tables": entries}
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "ascii")
        size = sum(file.stat().st_size for file in partial.rglob("*") if file.is_file())
        if exists:  # it may be a link, a mount, or where the user stands: it stays
            for file in partial.iterdir():
                file.rename(target / file.name)
        else:
            partial.rename(target)
    except UnwritableLog:
        raise
    except OSError as error:
        raise UnwritableLog(
            f"Could not export to {folder!r}: expected a directory that can be written, got "
            f"{error.strerror or error}. Choose another, or make room."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    rows = sum(entry["rows"] for entry in entries)
    said = f"{counted(len(entries), 'table')}, {counted(rows, 'row')}, {size_of(size)}"
    out.write(f"{printable(folder)}: {said}; {MANIFEST} describes each file\n")
    return 0


def local(out: str) -> str:
    """The path that is exported to; raises UnwritableLog for one in a store."""
    path = located(out)
    if is_remote(path):
        raise UnwritableLog(
            f"Could not export to {out!r}: expected a path of this machine, got one in a store. "
            "Export to a local one, and copy it."
        )
    return path


def _tables(runs: Sequence[Run], options: argparse.Namespace) -> Iterator[Table]:
    kinds, threshold = options.tables, options.threshold
    if "runs" in kinds:
        yield runs_table(runs)
    for run in runs:
        if "layers" in kinds:
            yield Table("layers", run.overview(threshold).columns(), run.name)
        if "violations" in kinds:
            yield violations_table(run)
        if "function" in kinds and run.function.places:
            yield Table("function", run.function.columns(), run.name)
        if "channels" in kinds:
            tables = channels_tables(run, options.layer, threshold)
            yield from options.progress(tables, f"Writing {run.name}", len(run.variables))


def _written(folder: Path, tables: Iterator[Table], write: Any, form: str) -> Iterator[Any]:
    """Writes tables and yields their entries for the manifest."""
    runs: dict[str, str] = {}
    variables: Counter[str] = Counter()
    for table in tables:
        place, name = "", table.kind
        if table.run is not None:
            place = runs.setdefault(table.run, f"{len(runs) + 1:04}-{safe(table.run)}")
            (folder / place).mkdir(exist_ok=True)
        if table.variable is not None:
            variables[place] += 1
            name = f"{variables[place]:05}-{safe(table.variable)}"
        path = Path(place, f"{name}.{form}")
        write(folder / path, table.columns)
        yield _entry(path, table, form)


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
    for name in ("channel", "first_step", "last_step", "elements", "held"):
        columns[name] = np.array([row[name] for row in rows], np.int64)
    columns["largest"] = np.array([row["largest"] for row in rows], np.float64)
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
