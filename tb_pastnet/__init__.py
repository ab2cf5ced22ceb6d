"""See which channels of a network move, are frozen or are pruned.

The public names, loaded when they are first used: importing this package imports neither TensorFlow
nor TensorBoard.

Example:
    >>> import tb_pastnet as pastnet
    >>> "PastNetCallback" in dir(pastnet)
    True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_pastnet import errors as errors
    from tb_pastnet.train import summary as summary
    from tb_pastnet.train.callback import PastNetCallback as PastNetCallback
    from tb_pastnet.train.past import PastVariables as PastVariables
    from tb_pastnet.train.recorder import Recorder as Recorder

__version__ = "0.1.0"

_HOMES = {
    "PastNetCallback": "tb_pastnet.train.callback",
    "PastVariables": "tb_pastnet.train.past",
    "Recorder": "tb_pastnet.train.recorder",
    "errors": "tb_pastnet.errors",
    "summary": "tb_pastnet.train.summary",
}
_NEEDS_TENSORFLOW = {"PastNetCallback", "PastVariables", "Recorder", "summary"}

__all__ = ["PastNetCallback", "PastVariables", "Recorder", "errors", "summary"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tb_pastnet' has no attribute {name!r}")
    try:
        module = importlib.import_module(_HOMES[name])
    except ModuleNotFoundError as error:
        if name in _NEEDS_TENSORFLOW and error.name in ("tensorflow", "keras"):
            raise ImportError(
                f"Could not load tb_pastnet.{name}: expected {error.name} to be installed, got "
                f"none. Run: pip install tb-pastnet[tensorflow]"
            ) from error
        raise
    value = module if _HOMES[name].endswith("." + name) else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
