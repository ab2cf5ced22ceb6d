"""All exact figures of a run, block by block as the page asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tensorboards import Board

BY_LAYER = ("age", "counts", "violated", "mean_delta", "pruned")
BY_STEP = ("steps", "wall_times", "learning_rates")


def all_records(here: Board, **query: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the joined arrays of all blocks, of `run` and maybe at `th`.

    `age` and what belongs to it is of each layer's newest record at or before the step: where it
    isn't 0 the layer lacks the record.
    """
    header, arrays = here.arrays("/records", **query)
    blocks = [arrays]
    while len(arrays["steps"]):
        _, arrays = here.arrays("/records", at=int(blocks[0]["steps"][0]) - 1, **query)
        if arrays["steps"][0] == blocks[0]["steps"][0]:
            break
        blocks.insert(0, arrays)
    del header["sections"]
    joined = {name: np.concatenate([one[name] for one in blocks]) for name in BY_STEP}
    joined |= {name: np.concatenate([one[name] for one in blocks], axis=1) for name in BY_LAYER}
    return header, joined
