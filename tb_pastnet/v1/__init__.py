"""tb_pastnet for TF1-style graphs: `tf.compat.v1`, sessions and name scopes.

Ops are built when a function is called or an object is made, before the graph is finalized; they
run in the user's session. The names are loaded when they are first used.

Example:
    >>> import tb_pastnet as pastnet
    >>> "sync_op" in dir(pastnet.v1)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.v1 import summary as summary
    from tb_pastnet.v1.clones.clone_graph import ClonedGraph as ClonedGraph
    from tb_pastnet.v1.clones.clone_graph import clone_network as clone_network
    from tb_pastnet.v1.graph.graph_variables import MASK_VARIABLES as MASK_VARIABLES
    from tb_pastnet.v1.graph.graph_variables import PAST_VARIABLES as PAST_VARIABLES
    from tb_pastnet.v1.masks.graph_masks import Masks as Masks
    from tb_pastnet.v1.past.past_graph import PastGraph as PastGraph
    from tb_pastnet.v1.past.past_graph import past_network as past_network
    from tb_pastnet.v1.past.sync import SyncHook as SyncHook
    from tb_pastnet.v1.past.sync import sync_op as sync_op
    from tb_pastnet.v1.recorder import Recorder as Recorder
    from tb_pastnet.v1.recorder import RecorderHook as RecorderHook

_HOMES = {
    "MASK_VARIABLES": "tb_pastnet.v1.graph.graph_variables",
    "PAST_VARIABLES": "tb_pastnet.v1.graph.graph_variables",
    "ClonedGraph": "tb_pastnet.v1.clones.clone_graph",
    "Masks": "tb_pastnet.v1.masks.graph_masks",
    "PastGraph": "tb_pastnet.v1.past.past_graph",
    "Recorder": "tb_pastnet.v1.recorder",
    "RecorderHook": "tb_pastnet.v1.recorder",
    "SyncHook": "tb_pastnet.v1.past.sync",
    "clone_network": "tb_pastnet.v1.clones.clone_graph",
    "past_network": "tb_pastnet.v1.past.past_graph",
    "summary": "tb_pastnet.v1.summary",
    "sync_op": "tb_pastnet.v1.past.sync",
}

__all__ = list(_HOMES)

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
