"""Whether numba computes: if it is installed, works, and isn't switched off."""

from __future__ import annotations

import importlib
import logging
import os
from types import ModuleType

SWITCH = "PASTNET_FAST"
"""Environment variable: 0 switches numba off."""


def numba_kernels(otherwise: str, module: str = "network_kernel") -> ModuleType | None:
    """Returns a module of `core` that needs numba; None without numba.

    `otherwise` is what computes instead, for the log line with the reason.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        return importlib.import_module(f"tb_pastnet.core.{module}")
    except ModuleNotFoundError:  # the extra `fast` isn't installed
        return None
    except Exception as error:
        text = "Could not use numba, so %s is used instead: %s. Repair or remove it."
        logging.getLogger("tb_pastnet").warning(text, otherwise, error)
        return None
