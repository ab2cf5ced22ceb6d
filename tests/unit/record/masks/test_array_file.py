"""Files of arrays: written whole, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.record.masks.array_file import write_arrays


class Failing:
    def __array__(self, *_: object, **__: object) -> object:
        raise ValueError("no values")


def test_a_file_stays_as_it_is_if_it_cant_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "masks.npz"
    write_arrays(path, {"a": np.arange(3)})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="no values"):
        write_arrays(path, {"a": np.ones(2), "b": Failing()})  # type: ignore[dict-item]
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    write_arrays(path, {"a": np.arange(3)})
    reader.join(60)
    assert read[0].startswith(b"PK")
    assert path.is_fifo()
