"""Whether numba measures: if it is installed, works, and isn't switched off."""

from __future__ import annotations

import logging
import os
from types import ModuleType

SWITCH = "PASTNET_FAST"
"""Environment variable: 0 switches numba off."""


def numba_kernels(otherwise: str) -> ModuleType | None:
    """Returns `core.kernels`; None without numba.

    `otherwise` is what measures instead, for the log line with the reason.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        from tb_pastnet.core import kernels
    except ModuleNotFoundError:  # the extra `fast` isn't installed
        return None
    except Exception as error:
        text = "Could not use numba, so %s is used instead: %s. Repair or remove it."
        logging.getLogger("tb_pastnet").warning(text, otherwise, error)
        return None
    return kernels
