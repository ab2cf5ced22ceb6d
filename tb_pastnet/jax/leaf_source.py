"""The source of a network whose weights are leaves of a pytree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from tb_pastnet.core.float_words import address_of, words_of
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

    def _locate(self, members: str, dtype: str) -> tuple[list[int], object]:
        """See `ArraySource`."""
        leaf, dense = self._tree.leaf, self._dense
        addresses, kept, elsewhere = [], [], []
        for place, weight in enumerate(self._together[members]):
            value, address = leaf(weight.number), 0
            if (
                isinstance(value, jax.Array)
                and value.shape == weight.shape
                and value.dtype.name == dtype
                and (value.sharding, getattr(value, "_pjrt_layout", None))
                == dense.get(weight.number)
            ):
                address = value.unsafe_buffer_pointer()
            else:
                fetch(value)
                elsewhere.append(place)
            addresses.append(address)
        for place in elsewhere:
            weight = self._together[members][place]
            array = words_of(weight.effective(), dtype)
            addresses[place] = address_of(array)
            kept.append(array)
            self._compare_once(weight.number, leaf(weight.number))
        return addresses, kept

    def _compare_once(self, number: int, value: Any) -> None:
        """Notes the layout of an array whose values are at its address, in order."""
        layout = getattr(value, "_pjrt_layout", None)
        devices = [] if layout is None else [each.platform for each in value.devices()]
        if devices == ["cpu"]:
            array = np.asarray(value)
            in_order = array.flags.c_contiguous and array.nbytes == value.nbytes
            if in_order and address_of(array) == value.unsafe_buffer_pointer():
                self._dense[number] = value.sharding, layout
