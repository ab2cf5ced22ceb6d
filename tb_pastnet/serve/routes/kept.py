"""Answers that are kept until their data change, and what several routes share."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.description import Variable
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import UNKEPT, Store
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import Answer, Known

_NAME_BYTES = 512


def kept(
    store: Store,
    key: tuple[Hashable, ...],
    version: Hashable,
    make: Callable[[], tuple[Answer, bool]],
    *,
    small: bool = False,
) -> Answer | Known:
    """An answer from the cache. One that TensorBoard withheld a part of is made anew each time.

    Of an answer that was given before its name is kept for longer, so that a client that still has
    it is told so at no cost.

    Args:
        store: the records.
        key: which answer.
        version: changes when the data behind it change.
        make: gives the answer, and whether nothing was withheld.
        small: whether it is little that is made of much, and large answers shall not displace it.
    """
    keep = store.kept_small if small else store.kept

    def sized() -> tuple[Answer, int]:
        made, complete = make()
        if complete:
            store.kept_small(name, version, lambda: (made.tag, _NAME_BYTES))
        return made, len(made.body) if complete else UNKEPT

    def fresh() -> Answer:
        return keep(key, version, sized)

    name = ("name", *key)
    if store.holds_small(name, version):
        return Known(store.kept_small(name, version, lambda: (fresh().tag, _NAME_BYTES)), fresh)
    return fresh()


def chosen(store: Store, caller: Caller, arguments: Arguments) -> tuple[Run, Variable, str]:
    """The run, the variable and the id of the layer that are asked for."""
    run = parameters.run(arguments, store.catalog(caller))
    layer = parameters.layer(arguments, run)
    return run, parameters.variable(arguments, run, layer), layer.id


def first_after(steps: npt.NDArray[np.int64], since: int | None) -> int:
    """The position of the first record behind a step; all of them where none is named."""
    return 0 if since is None else int(np.searchsorted(steps, since, side="right"))
