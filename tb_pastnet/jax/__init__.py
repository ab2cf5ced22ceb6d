"""Records networks of JAX: pytrees of Flax, Equinox, Haiku, or plain dictionaries.

Example:
    >>> import tb_pastnet as pastnet
    >>> "Recorder" in dir(pastnet.jax)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.jax.copied_steps import preflight as preflight
    from tb_pastnet.jax.recorder import Recorder as Recorder

_HOMES = {
    "Recorder": "tb_pastnet.jax.recorder",
    "preflight": "tb_pastnet.jax.copied_steps",
}

__all__ = list(_HOMES)

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
