"""Answers that are kept until their data change, and what several routes share."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.description import Variable
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import Answer
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import UNKEPT, Store

MOST_STEP = 10**15
"""The largest step that a request may name."""


def kept(
    store: Store, key: Hashable, version: Hashable, make: Callable[[], tuple[Answer, bool]]
) -> Answer:
    """An answer from the cache. One that TensorBoard withheld a part of is made anew each time."""

    def sized() -> tuple[Answer, int]:
        made, complete = make()
        return made, len(made.body) if complete else UNKEPT

    return store.kept(key, version, sized)


def chosen(store: Store, caller: Caller, arguments: Arguments) -> tuple[Run, Variable, str]:
    """The run, the variable and the id of the layer that are asked for."""
    run = parameters.run(arguments, store.catalog(caller))
    layer = parameters.layer(arguments, run)
    return run, parameters.variable(arguments, run, layer), layer.id


def first_after(steps: npt.NDArray[np.int64], since: int | None) -> int:
    """The position of the first record behind a step; all of them where none is named."""
    return 0 if since is None else int(np.searchsorted(steps, since, side="right"))
