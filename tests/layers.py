"""What a layer's answer says of each cell, as its documentation describes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.containers import unpack


def arrays_of(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """A container; of a layer the states and relative deltas of all cells, (channels, records)."""
    header, arrays = unpack(data)
    if "state_lengths" not in arrays:
        return header, arrays
    places, values = arrays["delta"], arrays.pop("delta_values")
    states = np.repeat(arrays["state"], arrays.pop("state_lengths"))
    return header, {**arrays, "state": states.reshape(places.shape), "delta": values[places]}
