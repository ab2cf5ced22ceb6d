"""The recorder of `PastNetCallback` for Keras on JAX or PyTorch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import keras

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.arrays.used_rate import UsedRate
from tb_pastnet.keras.arrays.values import Values
from tb_pastnet.keras.audit.flag_audit import FlagAudit
from tb_pastnet.keras.model.walk import layer_variables
from tb_pastnet.keras.model.weights import (
    AxisOverrides,
    FoundWeight,
    TrainableFlags,
    network_of,
    shown,
)
from tb_pastnet.keras.types import Model, Probed, RateSource
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.array_recorder import RatedSource
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.recording import EXIT_TIMEOUT, Recording
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.weight import Array


class VariableWeight(FoundWeight):
    """A weight that a keras.Variable holds, or `values` while it is trained."""

    values: Values

    def read(self) -> Array:
        """See `Weight`."""
        return self.values.read(self.variable)


class VariableAudit(FlagAudit, ArrayAudit):
    """The audit of weights that Keras's `trainable` holds."""

    def __init__(self, weights: Sequence[VariableWeight]) -> None:
        FlagAudit.__init__(self, weights)
        ArrayAudit.__init__(self, weights, DecayByNumbers())


class VariableRecorder(Recording):
    """A `Recording` of a Keras model by the arguments of `PastNetCallback`.

    Masks and probes work only on TensorFlow.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        model: Model,
        every: int,
        past: str | int,
        variables: Iterable[Any] | None,
        channel_axis: AxisOverrides | None,
        learning_rate: RateSource,
        initial_step: int,
        audit: bool,
        probe: Probed,
        budget: float | None,
        on_violation: Wish = LOG,
        probe_every: int = 1,
        follows: Iterable[Any] = (),
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        backend = keras.backend.backend()
        if probe is not None:
            raise InvalidArgument(
                f"Could not evaluate a probe: expected Keras on TensorFlow, got the backend "
                f"{backend!r}. Leave probe= out, or set KERAS_BACKEND=tensorflow."
            )
        self._values, failures = Values(model), Failures()
        network = network_of(
            VariableWeight, layer_variables(model), shown(model), variables, channel_axis, follows
        )
        for weight in network.everything:
            weight.values = self._values
        rate = UsedRate(learning_rate, model, self._values)
        audited = Audit(VariableAudit(network.weights), lambda: None) if audit else None
        start = network.origin()
        tracker = MaskTracker(network.weights, lambda: None, audited, lambda: start, failures)
        super().__init__(
            logdir,
            VariableSource(network, rate, ("keras", backend)),
            Schedule(every, past, initial_step, budget, probe_every=probe_every),
            tracker,
            failures,
            on_violation=on_violation,
            log=log,
            exit_timeout=exit_timeout,
        )

    def steps_of(self, optimizer: keras.optimizers.Optimizer) -> int:
        """How many updates an optimizer has made, even while JAX holds its variables."""
        return int(self._values.read(optimizer.iterations))

    def expect_update(self) -> None:
        """Before a step, notes where the values of variables go."""
        self._values.note()


class VariableSource(RatedSource):
    """Keras weights, each of whose flags is read once."""

    def __init__(self, network: Any, rate: UsedRate, packages: Sequence[str]) -> None:
        super().__init__(network, rate, packages, *_processes())
        self._flags = TrainableFlags([weight.found for weight in network.weights])

    def trainable(self) -> Sequence[bool]:
        """See `Source`."""
        return self._flags.read()


def _processes() -> tuple[int, int]:
    """The index of this process among those that train the model, from 0, and their number."""
    if keras.backend.backend() == "jax":
        jax: Any = sys.modules["jax"]
        return jax.process_index(), jax.process_count()
    workers: Any = sys.modules["torch"].distributed
    alone = not (workers.is_available() and workers.is_initialized())
    return (0, 1) if alone else (workers.get_rank(), workers.get_world_size())
