"""What a probe records, made by formulas and written into a lineage without `tb_pastnet.keras`."""

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
from tests.event_files import LineageWriter

PROBE = (Input("image", (64, 8, 8, 1), "float32", "5a0c"),)
PLACES = (
    Place("layer", "conv1", 256),
    Place("layer", "block/conv2", 384),
    Place("output", "classes", 10),
)


def values(steps: Sequence[int], places: int = len(PLACES), seed: int = 0) -> np.ndarray:
    """float32 (4, records, places), each a function of its step; only the last place decides."""
    step, place = np.asarray(steps, np.float64)[:, None], np.arange(places)[None, :]
    relative = (place + 1 + seed) / (step + 2)
    found = np.stack([relative, 1 - relative / 9, relative**2, relative / 99]).astype(np.float32)
    found[2:, :, :-1] = np.nan
    return found


def change(
    steps: Sequence[int],
    first: int = 0,
    *,
    places: Sequence[Place] = PLACES,
    probe: Sequence[Input] = PROBE,
    seed: int = 0,
) -> FunctionChange:
    """Records of these steps, numbered from `first`, each compared with the step before."""
    at = np.asarray(steps, np.int64)
    return FunctionChange(
        tuple(probe),
        tuple(places),
        np.arange(first, first + len(at)),
        at,
        at - 1,
        values(steps, len(places), seed),
    )


def write(writer: LineageWriter, *changes: FunctionChange) -> None:
    """Puts messages into a lineage, one after the other."""
    for one in changes:
        at = writer.event_step(TAG_FUNCTION, int(one.steps[-1]))
        sealed = encode_function_change(one, tag=TAG_FUNCTION, step=at, lineage=writer.lineage)
        writer.put(TAG_FUNCTION, at, sealed)


def written(
    writer: LineageWriter, steps: Sequence[int], first: int = 0, a_message: int = 16, **more: object
) -> None:
    """Writes records of these steps in as many messages as they need."""
    for at in range(0, len(steps), a_message):
        write(writer, change(steps[at : at + a_message], first + at, **more))  # type: ignore[arg-type]
