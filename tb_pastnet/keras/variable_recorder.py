"""The recorder of `PastNetCallback` for Keras on JAX or PyTorch, without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import keras

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.audit.flag_audit import FlagAudit
from tb_pastnet.keras.measure.used_rate import UsedRate
from tb_pastnet.keras.model.walk import layer_variables
from tb_pastnet.keras.model.weights import (
    FoundWeight,
    TrainableFlags,
    network_of,
    shown,
)
from tb_pastnet.keras.still_variables import StillVariables
from tb_pastnet.keras.types import Model, Variable
from tb_pastnet.record.array_recorder import RatedSource
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.device_array import fetch, tensor_values, values_of
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.options import PRINTS, VALUES, Options
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.resting import HeldChannels, Resting
from tb_pastnet.record.weight import Array, Look, Network


class Values:
    """Finds the values of a model's variables, as arrays that are released at once.

    On JAX, `fit` takes them out of the variables for an epoch, and donates them to each step.
    `Callback.model` would put all of them back at each access, which doubles the time of a small
    step; here only requested values are read, in place.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._apart: dict[int, tuple[str, int]] = {}

    def note(self) -> None:
        """Before a step: notes the order in which Keras takes out the remaining variables."""
        model = self._model
        if keras.backend.backend() != "jax" or not getattr(model, "_jax_state_synced", False):
            return
        optimizer = getattr(model, "optimizer", None)
        self._apart = {
            id(variable): (kind, number)
            for kind, variables in (
                ("trainable_variables", model.trainable_variables),
                ("non_trainable_variables", model.non_trainable_variables),
                ("optimizer_variables", getattr(optimizer, "variables", ())),
            )
            for number, variable in enumerate(variables)
        }

    def fetch(self, variable: Variable) -> None:
        """Starts copying the values to this machine's memory, if they are elsewhere."""
        fetch(self._stored(variable))

    def read(self, variable: Variable) -> Array:
        """The current values of a keras.Variable: a view if they are in this machine's memory."""
        return _array(self._stored(variable))

    def _stored(self, variable: Variable) -> Any:
        model = self._model
        state = getattr(model, "_jax_state", None)
        if state and not model._jax_state_synced and id(variable) in self._apart:
            kind, number = self._apart[id(variable)]
            return state[kind][number]
        return variable.value

    def number(self, value: Any) -> float:
        """A keras.Variable, a scalar array or a number, as a float."""
        return float(self.read(value) if isinstance(value, keras.Variable) else value)


def _array(value: Any) -> Array:
    return tensor_values(value) if hasattr(value, "detach") else values_of(value)


class VariableWeight(FoundWeight):
    """A weight that a keras.Variable holds, or `values` while it is trained."""

    values: Values

    def fetch(self) -> None:
        """See `Weight`."""
        self.values.fetch(self.variable)

    def read(self) -> Array:
        """See `Weight`."""
        return self.values.read(self.variable)


class VariableAudit(FlagAudit, ArrayAudit):
    """The audit of weights that Keras's `trainable` holds."""

    def __init__(
        self,
        weights: Sequence[VariableWeight],
        wish: bool | str = VALUES,
        looks: Mapping[str, Look] = MappingProxyType({}),
    ) -> None:
        ArrayAudit.__init__(self, weights, DecayByNumbers(), wish, looks)
        FlagAudit.__init__(self, weights)


class VariableSource(RatedSource):
    """Keras weights, each of whose flags is read once."""

    def __init__(
        self, network: Network[Any], rate: UsedRate, resting: Resting | None = None
    ) -> None:
        packages = "keras", keras.backend.backend()
        super().__init__(network, rate, packages, *_processes(), resting=resting)
        self._flags = TrainableFlags([weight.found for weight in network.weights])
        self._still = StillVariables(network.weights, rate)

    def trainable(self) -> Sequence[bool]:
        """See `Source`."""
        return self._flags.read()

    def why_still(
        self, still: Sequence[int], slow: Sequence[int], skip: int = 0
    ) -> Mapping[int, str]:
        """See `Source`."""
        return self._still.find(still, slow)


def _processes() -> tuple[int, int]:
    """The index of this process among those that train the model, from 0, and their number."""
    if keras.backend.backend() == "jax":
        jax: Any = sys.modules["jax"]
        return jax.process_index(), jax.process_count()
    workers: Any = sys.modules["torch"].distributed
    alone = not (workers.is_available() and workers.is_initialized())
    return (0, 1) if alone else (workers.get_rank(), workers.get_world_size())


class VariableRecorder(Recording):
    """A `Recording` of a Keras model by the options of `PastNetCallback`.

    Masks and probes work only on TensorFlow.
    """

    def __init__(self, logdir: str, model: Model, options: Options) -> None:
        if options.probe is not None:
            raise InvalidArgument(
                f"Could not evaluate a probe: expected Keras on TensorFlow, got the backend "
                f"{keras.backend.backend()!r}. Leave probe= out, or set KERAS_BACKEND=tensorflow."
            )
        values, failures = Values(model), Failures()
        wanted = options.variables, options.channel_axis, options.follows
        network = network_of(VariableWeight, layer_variables(model), shown(model), *wanted)
        for weight in network.everything:
            weight.values = values
        rate = UsedRate(options.learning_rate, model, values.number)
        # Before a step, notes where the values of variables go.
        self.expect_update = values.note
        # How many updates an optimizer has made, even while JAX holds its variables.
        self.steps_of = rate.updates
        wish = options.audit
        resting = Resting.among(network.weights, HeldChannels(), always=wish == PRINTS)
        source = VariableSource(network, rate, resting)
        audited = None
        if wish:
            audited = Audit(VariableAudit(network.weights, wish, source.looks), lambda: None)
        start = network.origin(source.looks)
        tracker = MaskTracker(network.weights, lambda: None, audited, lambda: start, failures)
        super().__init__(logdir, source, options.schedule(), tracker, failures, options)
        source.release()
