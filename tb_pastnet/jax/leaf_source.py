"""The source of a network whose weights are leaves of a pytree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from tb_pastnet.core.float_words import address_of, words_of
from tb_pastnet.jax.leaf_weights import LeafWeight
from tb_pastnet.jax.still_leaves import StillLeaves
from tb_pastnet.jax.tree import Tree
from tb_pastnet.record.array_recorder import Rate, RatedSource
from tb_pastnet.record.device_array import fetch
from tb_pastnet.record.resting import Resting
from tb_pastnet.record.weight import Array, Network


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
        resting: Resting | None = None,
    ) -> None:
        self._tree = tree
        self._still = StillLeaves(tree, network.weights)
        self._latest_rate = float("nan")
        # By number and dtype: the class of such an array, and its form.
        self._dense: dict[tuple[int, str], tuple[Any, Any]] = {}
        super().__init__(network, rate, packages, process, processes, resting)

    def learning_rate(self, step: int) -> float:
        """See `Source`."""
        self._latest_rate = super().learning_rate(step)
        return self._latest_rate

    def why_still(
        self, still: Sequence[int], slow: Sequence[int], skip: int = 0
    ) -> Mapping[int, str]:
        """See `Source`."""
        return self._still.find(still, slow, self._latest_rate)

    def decay(self, number: int) -> tuple[float, float]:
        """See `Source`."""
        return self._still.decay()

    def _locate(self, members: str, dtype: str) -> tuple[list[int], object]:
        """See `ArraySource`."""
        values, dense, weights = self._tree.all(), self._dense, self._together[members]
        addresses: list[int] = []
        kept: list[Array] = []
        elsewhere: list[int] = []
        value: Any
        kind: Any
        for place, weight in enumerate(weights):
            value = values[weight.number]
            kind, known = dense.get((weight.number, dtype), (None, ()))
            form = (value.aval, value.sharding, value._pjrt_layout) if type(value) is kind else None
            # Equal parts of tuples are mostly the same objects: these aren't compared.
            if kind is not None and form == known:
                dense[weight.number, dtype] = kind, form
                addresses.append(value.unsafe_buffer_pointer())
            else:
                fetch(value)
                elsewhere.append(place)
                addresses.append(0)
        for place in elsewhere:
            weight = weights[place]
            array = words_of(weight.effective(), dtype)
            addresses[place] = address_of(array)
            kept.append(array)
            self._compare_once((weight.number, dtype), values[weight.number])
        return addresses, kept

    def _compare_once(self, key: tuple[int, str], value: Any) -> None:
        """Notes the form of an array whose values are at its address, in order."""
        if not isinstance(value, jax.Array) or value.dtype.name != key[1]:
            return
        if getattr(value, "_pjrt_layout", None) is None:
            return
        if [each.platform for each in value.devices()] == ["cpu"]:
            array = np.asarray(value)
            if array.flags.c_contiguous and address_of(array) == value.unsafe_buffer_pointer():
                # Its shape and dtype, its sharding, and its layout in memory.
                form = value.aval, value.sharding, value._pjrt_layout
                self._dense[key] = type(value), form
