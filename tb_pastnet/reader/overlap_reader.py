"""Whose sets are read, and when: what all readers of overlaps have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.description import Variable
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store

Integers = npt.NDArray[np.int64]

Layers = Sequence[Mapping[int, Variable]]
"""Of each layer the variables to read, by the position of their runs."""


@dataclass(frozen=True, eq=False)
class Reader:
    """What the reading of many runs has in common.

    Attributes:
        store: the records.
        caller: on whose behalf.
        runs: from the catalog.
        steps: int64 (columns,) for each of them: of records, -1 for none.
        mask: "kept" or "trainable".
        said: gets what could not be read.
    """

    store: Store
    caller: Caller
    runs: Sequence[Run]
    steps: Sequence[Integers]
    mask: str
    said: Notes
