"""What is known of runs, from which `findings` makes sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account


class LayerFacts(NamedTuple):
    """What is known of a layer of a run.

    Attributes:
        id: of the layer.
        channels: how many there are.
        steps: int64 (records,), of its records.
        counts: uint32 (records, 6), channels in each state.
        nonfinite: uint32 (records,), channels with NaN or infinity.
        mean_delta: float32 (records,), see `Row`.
        stalled: channels that are meant to train and stand still, see `states.stalled`.
        stalled_since: the step since which all of these do, None where there are none.
    """

    id: str
    channels: int
    steps: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint32]
    nonfinite: npt.NDArray[np.uint32]
    mean_delta: npt.NDArray[np.float32]
    stalled: int = 0
    stalled_since: int | None = None


class Violated(NamedTuple):
    """A channel that changed while it was held.

    Attributes:
        layer: the id of its layer.
        variable: its own.
        channel: which one.
        first_step: of the first record that shows it.
        last_step: of the last one.
        cause: a key of `CAUSES`, or one of a later version.
    """

    layer: str
    variable: str
    channel: int
    first_step: int
    last_step: int
    cause: str


class RunFacts(NamedTuple):
    """What is known of a run.

    Attributes:
        name: of the run.
        last_step: of its newest record, None where there is none.
        layers: in forward order.
        violated: channels that changed while held.
        account: what became of its records.
    """

    name: str
    last_step: int | None
    layers: Sequence[LayerFacts]
    violated: Sequence[Violated] = ()
    account: Account = Account()
