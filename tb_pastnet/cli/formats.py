"""Tables as files: CSV, Parquet, NPZ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.reader.columns import Column, Columns, Labels
from tb_pastnet.reader.csv_export import harmless, table

_ROWS = 1 << 14


def write_csv(path: Path, columns: Columns) -> None:
    """Writes CSV after RFC 4180, in UTF-8. Numbers are read back as they are; NaN is empty.

    A name that a spreadsheet would take for a formula begins with an apostrophe.
    """
    cells = [_texts(column) for column in columns.values()]
    rows = max((_length(column) for column in columns.values()), default=0)
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(table(list(columns), []))
        for at in range(0, rows, _ROWS):
            some = [texts(slice(at, at + _ROWS)) for texts in cells]
            head, *rest = zip(*some, strict=True)
            file.write(table(head, rest))


def write_npz(path: Path, columns: Columns) -> None:
    """Writes NPZ, an array a column. Texts are numbers of names, which the manifest has."""
    arrays: dict[str, Any] = {
        name: one.codes if isinstance(one, Labels) else one for name, one in columns.items()
    }
    np.savez_compressed(path, **arrays)


def write_parquet(path: Path, columns: Columns) -> None:
    """Writes Parquet; texts are dictionary-encoded.

    Raises:
        InvalidArgument: pyarrow isn't installed.
    """
    arrow, parquet = _arrow()

    def array(column: Column) -> Any:
        if not isinstance(column, Labels):
            return arrow.array(column)
        names = [name.encode("utf-8", "replace").decode("utf-8") for name in column.names]
        return arrow.DictionaryArray.from_arrays(column.codes, arrow.array(names, arrow.string()))

    found = arrow.table({name: array(column) for name, column in columns.items()})
    parquet.write_table(found, path)


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
    """What writes a format: "csv", "parquet" or "npz".

    Raises:
        InvalidArgument: what it needs isn't installed.
    """
    if form == "parquet":
        _arrow()
    return {"csv": write_csv, "npz": write_npz, "parquet": write_parquet}[form]


def _length(column: Column) -> int:
    return len(column.codes if isinstance(column, Labels) else column)


def _texts(column: Column) -> Callable[[slice], list[str]]:
    """What gives the cells of some rows."""
    if isinstance(column, Labels):
        names = [harmless(name) for name in column.names]
        codes = column.codes
        return lambda rows: [names[code] for code in codes[rows].tolist()]
    if column.dtype.kind == "b":
        return lambda rows: [str(int(value)) for value in column[rows]]
    if column.dtype.kind == "f":
        return lambda rows: list(map(_number, _floats(column[rows])))
    return lambda rows: list(map(str, column[rows].tolist()))


def _floats(column: npt.NDArray[Any]) -> list[Any]:
    """Of single precision the fewest digits that tell the number."""
    return list(column) if column.dtype == np.float32 else column.tolist()


def _number(value: Any) -> str:
    text = str(value)
    return "" if text == "nan" else text.removesuffix(".0")
