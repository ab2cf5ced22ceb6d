"""Whether numba measures: where it is installed, works, and isn't kept out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from tb_pastnet.core.axes import ChannelAxis

if TYPE_CHECKING:
    from tb_pastnet.core.memory_layout import MemoryLayout

SWITCH = "PASTNET_FAST"
"""Variable of the environment: 0 keeps numba out where it is installed."""


def layouts(otherwise: str) -> Callable[[ChannelAxis, int], MemoryLayout | None]:
    """Gives `core.memory_layout.layout_of`; where numba doesn't measure, what gives None for all.

    `otherwise` is what measures then, for the line that says why numba can't.
    """
    if os.environ.get(SWITCH) == "0":
        return _nowhere
    try:
        from tb_pastnet.core.memory_layout import layout_of
    except ModuleNotFoundError:  # the extra `fast` isn't installed
        return _nowhere
    except Exception as error:
        text = "Could not use numba, so that %s measures: %s. Mend or remove it."
        logging.getLogger("tb_pastnet").warning(text, otherwise, error)
        return _nowhere
    return layout_of


def _nowhere(axis: ChannelAxis, members: int) -> None:
    """No array has a layout for numba."""
