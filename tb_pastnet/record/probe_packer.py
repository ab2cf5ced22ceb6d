"""What a probe says of records, packed beside their blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_pastnet.format.function_change import (
    FunctionChange,
    Input,
    Place,
    encode_function_change,
)
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.record.messages import Message
from tb_pastnet.record.record import Record


class ProbePacker:
    """Packs how far outputs moved."""

    def __init__(self, inputs: Sequence[Input], places: Sequence[Place]) -> None:
        self._inputs = tuple(inputs)
        self._places = tuple(places)

    def pack(self, records: Sequence[Record], lineage: int) -> list[Message]:
        """Packs those of some records in one message; none where no record has values."""
        probed = [(each, each.function) for each in records if each.function is not None]
        if not probed:
            return []
        change = FunctionChange(
            self._inputs,
            self._places,
            np.array([record.sequence for record, _ in probed], np.int64),
            np.array([record.step for record, _ in probed], np.int64),
            np.array([record.past_step for record, _ in probed], np.int64),
            np.stack([values for _, values in probed], axis=1),
        )
        step = probed[-1][0].step
        sealed = encode_function_change(change, tag=TAG_FUNCTION, step=step, lineage=lineage)
        return [Message(TAG_FUNCTION, step, sealed)]
