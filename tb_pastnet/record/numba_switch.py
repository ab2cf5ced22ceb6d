"""Whether numba measures: where it is installed, works, and isn't kept out."""

from __future__ import annotations

import logging
import os
from types import ModuleType

SWITCH = "PASTNET_FAST"
"""Variable of the environment: 0 keeps numba out where it is installed."""


def numba_kernels(otherwise: str) -> ModuleType | None:
    """Gives `core.kernels`; None where numba doesn't measure.

    `otherwise` is what measures then, for the line that says why numba can't.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        from tb_pastnet.core import kernels
    except ModuleNotFoundError:  # the extra `fast` isn't installed
        return None
    except Exception as error:
        text = "Could not use numba, so that %s measures: %s. Mend or remove it."
        logging.getLogger("tb_pastnet").warning(text, otherwise, error)
        return None
    return kernels
