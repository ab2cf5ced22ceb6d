"""What tb_pastnet does, for TF1-style graphs: `tf.compat.v1`, sessions and name scopes.

Ops are built when a function is called or an object is made, before the graph is finalized; they
run in the session of the user. The names are loaded when they are first used.

Example:
    >>> import tb_pastnet as pastnet
    >>> "sync_op" in dir(pastnet.v1)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.v1.clones.clone import ClonedGraph as ClonedGraph
    from tb_pastnet.v1.clones.clone import clone_network as clone_network
    from tb_pastnet.v1.hooks import SyncHook as SyncHook
    from tb_pastnet.v1.past import PastGraph as PastGraph
    from tb_pastnet.v1.past import past_network as past_network
    from tb_pastnet.v1.shadows import PAST_VARIABLES as PAST_VARIABLES
    from tb_pastnet.v1.sync import sync_op as sync_op

_HOMES = {
    "PAST_VARIABLES": "tb_pastnet.v1.shadows",
    "ClonedGraph": "tb_pastnet.v1.clones.clone",
    "PastGraph": "tb_pastnet.v1.past",
    "SyncHook": "tb_pastnet.v1.hooks",
    "clone_network": "tb_pastnet.v1.clones.clone",
    "past_network": "tb_pastnet.v1.past",
    "sync_op": "tb_pastnet.v1.sync",
}

__all__ = [
    "PAST_VARIABLES",
    "ClonedGraph",
    "PastGraph",
    "SyncHook",
    "clone_network",
    "past_network",
    "sync_op",
]

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
