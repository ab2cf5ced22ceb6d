"""Records a pytree while a loop of the user's own trains it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import jax

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.checks import check_rate
from tb_pastnet.jax.recorded_leaves import AxisOverrides, network_of
from tb_pastnet.jax.state_causes import StateCauses
from tb_pastnet.jax.tree import Tree, by_name, leaves
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.array_recorder import ArrayRecorder, Rate, RatedSource
from tb_pastnet.record.overhead_timer import OUTSIDE
from tb_pastnet.record.recording import EXIT_TIMEOUT
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.record.schedule import Schedule

Masks = Any
"""A pytree of booleans or arrays of 0 and 1, a prefix of one, or a function that makes it."""


@answered
class Recorder(ArrayRecorder):
    """Records per channel how far a pytree is from its past values, into a log for the PastNet tab.

    Arrays of JAX don't change: each call says what the weights are now, and nothing of them is held
    beyond it, so that their buffers may be donated to the next step. Weights are copied one step
    before each record that is due, and at no other step is anything read.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    what fails is logged once per cause (logger `tb_pastnet`), counted, and shown in the tab.

    Where several processes train, that of index 0 writes.

    Args:
        logdir: the run's directory, of this machine or of a store such as "s3://bucket/runs/a".
        params: the pytree that is trained: a dictionary, an `nnx.Module` or its state, a module of
            Equinox, or any other. Leaves are named by their paths, such as "Dense_0/kernel".
            Integers, PRNG keys and what isn't an array are left out.
        every: a record is due where `step // every` grows, and at the first step; at the last one
            where `expect_end` tells it.
        past: what it is compared with: "previous" (one step before), "record" (the last record),
            "epoch" (the last call of `sync`), "initial" (the values now), or k (k steps before).
        variables: those to record, as names or patterns such as `"*/kernel"`. None: all.
        channel_axis: corrections of channel axes by name, for example `{"mix/w": 0}`.
        learning_rate: a number, or a function of the step that `record` gets. `record` may be given
            that of its step instead.
        initial_step: the step of the values now, above 0 where training goes on from a checkpoint.
            None: one less than the first step that is recorded.
        masks: which leaves updates may change, as `optax.masked` takes it: a pytree of booleans, a
            prefix of one, or a function that makes it of params. An array of 0 and 1 says it of
            each element. Nothing here holds what is False: it is compared bitwise with what it was.
        kept: the same for pruning: 0 where weights are pruned, and so should be zero.
        opt_state: the optimizer's state now, as `record` gets it.
        audit: whether each record compares what is declared so with what it was. That takes one
            more copy of these weights.
        budget: a share of the training's time, such as 0.01: records that are due are left out so
            that recording takes no more. None: all are made.
        on_violation: what follows where held weights have moved: "log", a line for each variable
            and cause, or a function that gets a list of what is new, each with a `text`.
        follows: weights that something else than an optimizer moves on purpose, such as a target
            network, as names or patterns.
        log: a function that gets the numbers of each record, a dictionary of floats, and its step:
            `wandb.log` is one.
        exit_timeout: seconds that the end of the program waits for a store.

    Raises:
        InvalidArgument: nothing is left to record, or `every`, `past`, an axis, `masks`, `kept` or
            `budget` can't be used.
        UnknownName: a name fits no leaf, or several.
        UnwritableLog: the log directory can't be made or written.

    Example:
        >>> import tempfile, jax.numpy as jnp
        >>> params = {"dense": {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}}
        >>> with Recorder(tempfile.mkdtemp(), params, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         params["dense"]["kernel"] *= 0.9
        ...         recorder.record(step, params)
        ...     recorder.flush()
        True
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        params: Any,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[str] | None = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: Rate = None,
        initial_step: int | None = None,
        masks: Masks = None,
        kept: Masks = None,
        opt_state: Any = None,
        audit: bool = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        follows: Iterable[str] = (),
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        schedule = Schedule(every, past, initial_step, budget)
        self._tree = Tree(params)
        check_rate(learning_rate)
        self._rate = learning_rate
        self._given_rate: Any = None
        self._causes = StateCauses(leaf.name for leaf in leaves(params))
        with self._tree.seen(params), self._causes.given(opt_state):
            network = network_of(params, self._tree, variables, channel_axis, follows)
            packages = ("jax", "flax", "optax")
            processes = jax.process_index(), jax.process_count()
            super().__init__(
                logdir,
                RatedSource(network, self._rate_of, packages, *processes),
                schedule,
                by_name(params, masks, "masks"),
                by_name(params, kept, "kept"),
                causes=self._causes,
                audit=audit,
                on_violation=on_violation,
                log=log,
                exit_timeout=exit_timeout,
            )
        self._tree.training = schedule.timer.part(OUTSIDE)

    # Each call says what the weights are now: there is nothing that could be asked for it later.
    def record(  # type: ignore[override]
        self, step: int, params: Any, learning_rate: Any = None, opt_state: Any = None
    ) -> None:
        """Tells that an update was made. Call it after each: it knows when a record is due.

        Args:
            step: the number of the update.
            params: the pytree now, of the same structure as at the beginning.
            learning_rate: that of the update, a number or an array of one, such as
                `optax.tree.get(opt_state, "learning_rate")`. None: that of the constructor.
            opt_state: the optimizer's state now: of it the causes of violations are found. None:
                by the numbers alone.
        """
        with self._tree.seen(params), self._causes.given(opt_state):
            self._given_rate = learning_rate
            super().record(step)
            self._given_rate = None

    def sync(self, params: Any) -> None:  # type: ignore[override]
        """Makes these values the past ones, for `past="epoch"`: call it at an epoch's end."""
        with self._tree.seen(params):
            super().sync()

    def restart(self, initial_step: int, params: Any) -> None:  # type: ignore[override]
        """Begins a new lineage because training begins anew, or goes back to a checkpoint.

        Args:
            initial_step: the step of the values now.
            params: these values.
        """
        with self._tree.seen(params):
            super().restart(initial_step)

    def declare(
        self, params: Any, masks: Masks = None, kept: Masks = None, opt_state: Any = None
    ) -> None:
        """Says what is held from the next step on, where that changes while training goes on.

        Args:
            params: the pytree now: what is held is compared with it.
            masks: as in the constructor; None: as before.
            kept: as in the constructor; None: as before.
            opt_state: the optimizer's state now, as `record` gets it.

        Raises:
            InvalidArgument: masks that don't fit the pytree.
        """
        with self._tree.seen(params), self._causes.given(opt_state):
            self._declare(by_name(params, masks, "masks"), by_name(params, kept, "kept"))
            self.observe()

    def _audit_end(self) -> None:
        """Nothing is known of weights after the last step that was recorded."""

    def _rate_of(self, step: int) -> Any:
        if self._given_rate is not None:
            return self._given_rate
        return self._rate(step) if callable(self._rate) else self._rate
