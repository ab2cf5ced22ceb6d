"""Records arrays that functions return: networks of any framework, or of none.

Example:
    >>> import tb_pastnet as pastnet
    >>> "Recorder" in dir(pastnet.numpy)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.numpy.recorder import Recorder as Recorder

_HOMES = {"Recorder": "tb_pastnet.numpy.recorder"}

__all__ = list(_HOMES)

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
