"""The source of a network of TensorFlow variables.

Statistics of all channels take as few passes over the weights as possible. float32 weights in this
machine's memory are measured by numba if it is installed (the extra `fast`), everything else by
TensorFlow, on its device.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_pastnet.core.float_words import address_of
from tb_pastnet.core.memory_layout import layout_of
from tb_pastnet.core.numba_switch import numba_kernels
from tb_pastnet.keras.masks.optimizers import UPDATING, slots_of
from tb_pastnet.keras.measure.copies import Stack, TensorCopies, stacks
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import EAGER, Runner
from tb_pastnet.keras.measure.used_rate import UsedRate
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.model.weights import TrainableFlags
from tb_pastnet.keras.still_variables import StillVariables
from tb_pastnet.keras.strategies import workers, writes
from tb_pastnet.record.array_copies import NetworkCopies
from tb_pastnet.record.resting import Resting, RestingCopies
from tb_pastnet.record.slot_history import SAMPLED
from tb_pastnet.record.source import PartedSource
from tb_pastnet.record.weight import Array, Network


class KerasSource(PartedSource):
    """A network of TensorFlow; past copies are next to its variables."""

    packages = ("tensorflow", "tensorflow-cpu", "keras")

    def __init__(
        self,
        network: Network[TFWeight],
        rate: Callable[[int], float],
        copies: int = 1,
        runner: Runner = EAGER,
        resting: Resting | None = None,
    ) -> None:
        super().__init__(network)
        self._resting = resting
        at_rest: Sequence[int] = () if resting is None else resting.numbers
        self._rate = rate
        self._flags = TrainableFlags([weight.found for weight in network.weights])
        weights = network.weights
        # A graph's optimizers can't be read.
        self._still = still_in_tensorflow(weights, rate) if isinstance(rate, UsedRate) else None
        others = [number for number in range(len(weights)) if number not in {*at_rest}]
        every = [
            stack._replace(members=tuple(others[member] for member in stack.members))
            for stack in stacks(
                [weights[number].variable for number in others],
                [weights[number].axis for number in others],
            )
        ]
        fused = fitting(every) if runner is EAGER else []
        taken = {stack.members for stack in fused}
        rest = [stack for stack in every if stack.members not in taken]
        measured = [stack.members for stack in fused], [at_rest], [stack.members for stack in rest]
        self._arrange([number for part in measured for members in part for number in members])
        # A rate that may be read with the weights; a graph's is read by its own operation.
        self._beside = rate if isinstance(rate, LearningRate) else LearningRate()
        self._fused = fused
        self._read = reading(fused, self._beside)
        self._values: list[Array] | None = None
        self._copies: dict[int, list[Any]] = {}
        for number in range(copies):
            parts: list[NetworkCopies | RestingCopies | TensorCopies] = []
            if fused:
                parts.append(fused_copies(fused, self._look))
            if resting is not None:
                parts.append(RestingCopies(resting))
            if rest:
                # Reading the rate once is enough.
                own = LearningRate() if fused else self._beside
                parts.append(TensorCopies(rest, runner, own))
            self._copies[number] = parts

    def updates(self) -> int | None:
        """See `Source`: of several optimizers the most."""
        rate = self._rate
        if not isinstance(rate, UsedRate):
            return None
        return max(map(rate.updates, rate.optimizers().values()), default=None)

    @property
    def writes(self) -> bool:
        """See `Source`: whether this is the chief."""
        return writes(weight.variable for weight in self.network.everything)

    @property
    def workers(self) -> int:
        """See `Source`."""
        return workers(weight.variable for weight in self.network.everything)

    def trainable(self) -> Sequence[bool]:
        """See `Source`."""
        return self._flags.read()

    def learning_rate(self, step: int) -> float:
        """See `Source`."""
        return self._rate(step)

    def rate_groups(self) -> Mapping[str, Collection[str]]:
        """See `Source`."""
        return self._beside.groups(self.network.weights)

    def group_rates(self) -> Sequence[float]:
        """See `Source`."""
        return self._beside.of_groups()

    def why_still(
        self, still: Sequence[int], slow: Sequence[int], skip: int = 0
    ) -> Mapping[int, str]:
        """See `Source`."""
        if self._still is None:
            return super().why_still(still, slow)
        return self._still.find(still, slow)

    def decay(self, number: int) -> tuple[float, float] | None:
        """See `Source`."""
        return None if self._still is None else self._still.decay(number)

    def copy(self, number: int) -> None:
        """See `Source`."""
        self.release()
        for part in self._copies[number]:
            part.take()
        self.release()

    def release(self) -> None:
        """See `Source`."""
        super().release()
        self._values = None

    def _look(self) -> list[Array]:
        self._values = self._read()
        return self._values

    def current(self) -> dict[str, Array]:
        """The values of weights measured by numba, by name: views, to be released soon."""
        if not self._fused:
            return {}
        names = [weight.name for weight in self.network.weights]
        # Those of a record that was just made, if any.
        read = self._look() if self._values is None else self._values
        return {
            names[member]: value
            for stack, values in zip(self._fused, read, strict=True)
            for member, value in zip(
                stack.members, values.reshape(-1, *stack.axis.shape), strict=True
            )
        }


def still_in_tensorflow(weights: Sequence[TFWeight], rate: UsedRate) -> StillVariables:
    """Finds why variables are idle, from any optimizer that has updated something."""

    def sample(slot: Any) -> tuple[Array, bool]:
        value = tf.reshape(tf.convert_to_tensor(slot), [-1])
        stride = int(value.shape[0]) // SAMPLED | 1
        return np.array(value[::stride]), not bool(tf.reduce_any(value != 0))

    def slots(optimizer: Any, weight: Any) -> Mapping[str, Any]:
        return slots_of(optimizer, weight.variable)

    return StillVariables(weights, rate, lambda: list(UPDATING), slots, sample)


def fitting(every: Sequence[Stack]) -> list[Stack]:
    """The stacks that numba can measure, in TensorFlow's memory."""
    if numba_kernels("TensorFlow") is None:
        return []
    fitted = [
        stack
        for stack in every
        if stack.variables[0].dtype == tf.float32
        and layout_of(stack.axis, len(stack.members)) is not None
    ]
    # The device that each is read into: for variables on an accelerator, that one.
    read = EAGER.function(lambda: [stack.read() for stack in fitted])
    places = [value.device for value in read()] if fitted else []
    return [stack for stack, place in zip(fitted, places, strict=True) if "CPU" in str(place)]


def fused_copies(fitted: Sequence[Stack], read: Callable[[], list[Any]]) -> NetworkCopies:
    """Past copies of stacks that numba measures."""
    from tb_pastnet.core import network_kernel

    def locate(_: str) -> tuple[list[int], object]:
        arrays = read()
        return [
            address_of(array) + array.nbytes // len(stack.members) * place
            for array, stack in zip(arrays, fitted, strict=True)
            for place in range(len(stack.members))
        ], arrays

    axes = [stack.axis for stack in fitted for _ in stack.members]
    return NetworkCopies(axes, locate, network_kernel)


def reading(fitted: Sequence[Stack], rate: LearningRate) -> Callable[[], list[Any]]:
    """Reads stacks, and the rate with them."""
    run = EAGER.function(lambda: [*(stack.read() for stack in fitted), *rate.tensors()])

    def read() -> list[Any]:
        # Views of TensorFlow's memory: nothing is copied, neither here nor by training, which
        # continues once they are released.
        tensors = run()
        rate.hear(tensors[len(fitted) :])
        return [np.asarray(memoryview(value)) for value in tensors[: len(fitted)]]

    return read
