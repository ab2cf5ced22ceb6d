"""Whether numba measures: if it is installed, works, and isn't switched off."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from tb_pastnet.core.axes import ChannelAxis

if TYPE_CHECKING:
    from tb_pastnet.core.memory_layout import MemoryLayout

SWITCH = "PASTNET_FAST"
"""Environment variable: 0 switches numba off."""


def layouts(otherwise: str) -> Callable[[ChannelAxis, int], MemoryLayout | None]:
    """Returns `core.memory_layout.layout_of`, or, without numba, a function that returns None.

    `otherwise` is what measures instead, for the log line with the reason.
    """
    if os.environ.get(SWITCH) == "0":
        return _nowhere
    try:
        from tb_pastnet.core.memory_layout import layout_of
    except ModuleNotFoundError:  # the extra `fast` isn't installed
        return _nowhere
    except Exception as error:
        text = "Could not use numba, so %s is used instead: %s. Repair or remove it."
        logging.getLogger("tb_pastnet").warning(text, otherwise, error)
        return _nowhere
    return layout_of


def _nowhere(axis: ChannelAxis, members: int) -> None:
    """No array has a layout for numba."""
