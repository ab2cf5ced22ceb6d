"""What a probe says of records, packed beside their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tb_pastnet.format.function_change import (
    FunctionChange,
    Input,
    Place,
    encode_function_change,
)
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.keras.log.events import Message

if TYPE_CHECKING:
    from tb_pastnet.keras.log.batch import Offer


class Functions:
    """Packs how far outputs moved.

    Args:
        inputs: the probe batch.
        places: what is compared.
    """

    def __init__(self, inputs: Sequence[Input], places: Sequence[Place]) -> None:
        self._inputs = tuple(inputs)
        self._places = tuple(places)

    def pack(self, offers: Sequence[Offer], lineage: int) -> list[Message]:
        """Packs those of some records.

        Args:
            offers: the records, in order.
            lineage: the writer's id.

        Returns:
            One message; none where no record has values.
        """
        known = [(one, one.function) for one in offers if one.function is not None]
        if not known:
            return []
        change = FunctionChange(
            self._inputs,
            self._places,
            np.array([offer.sequence for offer, _ in known], np.int64),
            np.array([offer.step for offer, _ in known], np.int64),
            np.array([offer.past_step for offer, _ in known], np.int64),
            np.stack([values for _, values in known], axis=1),
        )
        step = known[-1][0].step
        sealed = encode_function_change(change, tag=TAG_FUNCTION, step=step, lineage=lineage)
        return [Message(TAG_FUNCTION, step, sealed)]
