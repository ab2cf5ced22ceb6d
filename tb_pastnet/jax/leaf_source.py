"""The source of a network whose weights are leaves of a pytree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from tb_pastnet.jax.leaf_weights import LeafWeight
from tb_pastnet.jax.tree import Tree
from tb_pastnet.record.array_recorder import Rate, RatedSource
from tb_pastnet.record.device_array import fetch
from tb_pastnet.record.weight import Network


class LeafSource(RatedSource):
    """Leaves with a learning rate that is passed in; most are measured where JAX has them.

    For a new array, `np.asarray` takes longer than the statistics of some thousand weights. Its
    address is enough where its sharding and layout are those of an array that was compared once.
    """

    def __init__(
        self,
        network: Network[LeafWeight],
        tree: Tree,
        rate: Rate,
        packages: Sequence[str] = (),
        process: int = 0,
        processes: int = 1,
    ) -> None:
        self._tree = tree
        self._dense: dict[int, tuple[Any, Any]] = {}
        super().__init__(network, rate, packages, process, processes)

    def _locate(self) -> tuple[list[int], object]:
        """See `ArraySource`."""
        leaf, dense = self._tree.leaf, self._dense
        addresses, kept, elsewhere = [], [], []
        for place, weight in enumerate(self._together):
            value, address = leaf(weight.number), 0
            if (
                isinstance(value, jax.Array)
                and value.shape == weight.shape
                and value.dtype == np.float32
                and (value.sharding, getattr(value, "_pjrt_layout", None)) == dense.get(place)
            ):
                address = value.unsafe_buffer_pointer()
            else:
                fetch(value)
                elsewhere.append(place)
            addresses.append(address)
        for place in elsewhere:
            weight = self._together[place]
            array = np.ascontiguousarray(weight.effective(), np.float32)
            addresses[place] = array.__array_interface__["data"][0]
            kept.append(array)
            self._compare_once(place, leaf(weight.number), addresses[place])
        return addresses, kept

    def _compare_once(self, place: int, value: Any, address: int) -> None:
        """Notes the layout of an array whose values are at its address, in order."""
        layout = getattr(value, "_pjrt_layout", None)
        devices = [] if layout is None else [each.platform for each in value.devices()]
        if devices == ["cpu"] and value.unsafe_buffer_pointer() == address:
            self._dense[place] = value.sharding, layout
