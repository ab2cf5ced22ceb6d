"""`export`: tables as files in a new directory."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from tb_pastnet.cli.export_tables import (
    Table,
    channels_tables,
    function_table,
    layers_table,
    runs_table,
    violations_table,
    writer_of,
)
from tb_pastnet.cli.text import counted, printable, size_of
from tb_pastnet.core.states import THRESHOLD
from tb_pastnet.errors import UnwritableLog
from tb_pastnet.reader.log import Log, Run
from tb_pastnet.reader.tables import Labels

SCHEMA = 1
MANIFEST = "manifest.json"

_LONGEST = 40


def export(
    logdir: str,
    folder: str,
    out: TextIO,
    *,
    form: str,
    tables: Sequence[str],
    runs: Sequence[str] | None = None,
    layers: Sequence[str] | None = None,
    threshold: float | None = None,
) -> int:
    """Writes tables of a log. All of the directory appears at once, or nothing of it.

    Args:
        logdir: the log directory.
        folder: the directory to make; it may be there if it is empty.
        out: what was written is said there.
        form: "csv", "parquet" or "npz".
        tables: some of "runs", "layers", "violations", "function", "channels".
        runs: names of runs; None: all.
        layers: ids of layers whose channels are written; None: of all.
        threshold: the relative delta under which a channel is quiet.

    Raises:
        InvalidArgument: what the format needs isn't installed.
        UnreadableLog: the log is no directory.
        UnknownName: there is no such run, or no such layer in a run.
        UnwritableLog: the directory is there and not empty, or can't be written.
    """
    write = writer_of(form)
    chosen = Log(logdir).runs.chosen(runs)
    target = Path(folder)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UnwritableLog(
                f"Could not export to {folder!r}: expected no such directory or an empty one, "
                f"got one that holds something. Give another, or remove it."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.parent / f".pastnet-export-{secrets.token_hex(8)}"
        partial.mkdir()
    except UnwritableLog:
        raise
    except OSError as error:
        raise _unwritable(folder, error) from error
    written_tables = _tables(chosen, tables, layers, THRESHOLD if threshold is None else threshold)
    try:
        entries = list(_written(partial, written_tables, write, form))
        manifest = json.dumps({"schema": SCHEMA, "format": form, "tables": entries}, indent=1)
        (partial / MANIFEST).write_text(manifest + "\n", "ascii")
        size = sum(file.stat().st_size for file in partial.rglob("*") if file.is_file())
        _appear(partial, target)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    rows = sum(entry["rows"] for entry in entries)
    said = f"{counted(len(entries), 'table')}, {counted(rows, 'row')}, {size_of(size)}"
    out.write(f"{printable(folder)}: {said}; {MANIFEST} tells what each file holds\n")
    return 0


def _unwritable(folder: str, error: OSError) -> UnwritableLog:
    return UnwritableLog(
        f"Could not export to {folder!r}: expected a directory that can be written, got "
        f"{error.strerror or error}. Give another, or make room."
    )


def _appear(partial: Path, target: Path) -> None:
    if target.is_dir():
        target.rmdir()  # Windows renames onto no directory
    partial.rename(target)


def _tables(
    runs: Sequence[Run], kinds: Sequence[str], layers: Sequence[str] | None, threshold: float
) -> Iterator[Table]:
    if "runs" in kinds:
        yield runs_table(runs)
    for run in runs:
        if "layers" in kinds:
            yield layers_table(run, threshold)
        if "violations" in kinds:
            yield violations_table(run)
        if "function" in kinds and run.function.places:
            yield function_table(run)
        if "channels" in kinds:
            yield from channels_tables(run, layers, threshold)


def _written(folder: Path, tables: Iterator[Table], write: Any, form: str) -> Iterator[Any]:
    """Writes tables and gives their entries in the manifest."""
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
    """What of a name can stand in the name of a file, after a number that tells names apart.

    Example:
        >>> safe("block/conv1"), safe("../../etc/passwd"), safe("שלום")
        ('block_conv1', 'etc_passwd', '_')
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name[:_LONGEST]).strip("_") or "_"
