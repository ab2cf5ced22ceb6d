"""Records a pytree in the user's own training loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jax

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.core.subject import JAX, check_subject
from tb_pastnet.jax.leaf_source import LeafSource
from tb_pastnet.jax.leaf_weights import AxisOverrides, network_of
from tb_pastnet.jax.state_causes import StateCauses
from tb_pastnet.jax.tree import Tree, by_name
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.array_recorder import ArrayRecorder, Rate
from tb_pastnet.record.failures import noted
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.options import Options
from tb_pastnet.record.overhead_timer import NOT_MEASURED, OUTSIDE
from tb_pastnet.record.scalars import LogFunction

Declared = Any
"""A pytree of booleans or arrays of 0 and 1, a prefix of one, or a function that makes it."""

_NO_STATE = (
    "Why frozen weights moved is unknown: pass opt_state= to the Recorder and to each record"
)


@answered
class Recorder(ArrayRecorder):
    """Records per channel how far a pytree is from its past values, for the PastNet tab.

    JAX arrays don't change: each call passes the current weights, and keeps no reference to them,
    so their buffers may be donated to the next step. Weights are copied one step before each due
    record; at other steps nothing is read.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    failures are logged once per cause (logger `tb_pastnet`), counted, and shown in the tab.

    If several processes train, the one with index 0 writes.

    Args:
        logdir: the run's directory, local or in a store such as "s3://bucket/runs/a".
        params: the trained pytree: a dictionary, an `nnx.Module` or its state, an Equinox module,
            or any other. Leaves are named by their paths, such as "Dense_0/kernel". Integers, PRNG
            keys and non-arrays are left out.
        every: a record is due when `step // every` grows, at the first step, and at the last if
            `expect_end` announces it.
        past: what weights are compared with: "previous" (one step before), "record" (the previous
            record), "epoch" (the last call of `sync`), "initial" (the current values), or k (k
            steps before).
        variables: the weights to record, as names or patterns such as `"*/kernel"`. None: all.
        channel_axis: corrections of channel axes by name, for example `{"mix/w": 0}`.
        learning_rate: a number, or a function of the step that `record` gets. It may be passed to
            `record` instead.
        trainable: which leaves updates may change, as for `optax.masked`: a pytree of booleans, a
            prefix of one, or a function that makes it from params. An array of 0 and 1 is a mask of
            the elements. Weights with False aren't held here: they are compared bitwise with their
            earlier values.
        kept: the same for pruning: 0 where weights are pruned, and so should be zero.
        follows: weights that are moved on purpose by anything but an optimizer, such as a target
            network, as names or patterns, or as a mapping from these to the weights that they
            follow.
        expect: what should happen to weights, by patterns of their names: "frozen", "trains" or
            "sparsity >= 0.8", for example `{"base.*": "frozen"}`. It is checked, not enforced: at
            the first record, when other weights are frozen, and at the end. What contradicts it is
            a finding, logged, and passed to `on_violation`. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/verify_in_ci.html.
        config: hyperparameters to note in the log, a flat mapping such as `{"lr": 0.1, "seed": 7}`:
            `pastnet.read` and `report --json` give them back.
        audit: whether each record compares these weights with what they were: by "values", a copy
            of them, by "fingerprints", 8 bytes per channel, or True, by values up to 64 MiB. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/recording.html#a-frozen-base.
        budget: a limit of the recording overhead as a share of training, such as 0.01: due records
            beyond it are left out. None: no limit.
        on_violation: what to do when held weights have moved: "log", a line for each variable and
            cause, or a function that is called with a list of new violations, or of
            contradictions of `expect`, each with a `text`.
        log: a function that is called with the numbers of each record, a dictionary of floats, and
            its step, like `wandb.log`.
        initial_step: the step of the current values, above 0 if training resumes from a checkpoint.
            None: one less than the first call's step if that is 0 or 1; otherwise unknown, and a
            record that needs it has no delta.
        exit_timeout: seconds that the program waits at its end for a store.
        opt_state: the current optimizer state, as for `record`.

    Raises:
        InvalidArgument: there is nothing to record, or an axis, `trainable`, `kept` or another
            option is invalid.
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
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[str] | None = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: Rate = None,
        trainable: Declared = None,
        kept: Declared = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        initial_step: int | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
        opt_state: Any = None,
    ) -> None:
        check_logdir(logdir)
        check_subject(params, JAX, "record", "params")
        options = Options.of(locals())
        schedule = options.schedule()
        self._tree = Tree(params)
        self._causes = StateCauses(self._tree)
        with self._tree.seen(params, opt_state):
            network = network_of(params, self._tree, variables, channel_axis, follows)
            packages = ("jax", "flax", "optax")
            processes = jax.process_index(), jax.process_count()
            made_of = network, self._tree, learning_rate, packages, *processes
            super().__init__(
                logdir,
                network,
                partial(LeafSource, *made_of),
                schedule,
                by_name(params, trainable, "trainable"),
                by_name(params, kept, "kept"),
                options,
                causes=self._causes,
            )
        self._tree.training = schedule.timer.part(OUTSIDE)
        self._latest: Callable[[], Any] | None = None

    # Each call passes the current weights: they can't be read later. What the methods of Recording
    # do is measured, but waiting for the step is training.
    @noted("Could not make a record")
    def record(  # type: ignore[override]
        self, step: int, params: Any, learning_rate: Any = None, opt_state: Any = None
    ) -> None:
        """Call this after each update: it makes a record when one is due.

        Args:
            step: the number of the update.
            params: the current pytree, of the same structure as at the beginning.
            learning_rate: of the update, a number or an array of one, such as
                `optax.tree.get(opt_state, "learning_rate")`. None: that of the constructor.
            opt_state: the current optimizer state, for finding why held weights moved, or why
                others are idle. None: from the numbers only.
        """
        last = self._schedule.last
        try:
            if self._passed(step):
                self._latest = None
                return
            step = int(step)  # of an array: waiting for the device is training
        except Exception as error:
            if self._schedule.last != last:  # the step was made, see `metered`
                self._latest = None
                self._failures.add(NOT_MEASURED, error)
                return
            # Otherwise `record` notes it.
        with self._tree.seen(params, opt_state):
            self._source.given = learning_rate
            super().record(step)
            self._source.given = None
            self._latest = self._tree.latest() if self._measuring.left_out >= 0 else None
        if self._causes.misses_state:
            self._causes.misses_state = False
            self._failures.add(_NO_STATE)

    @noted("Could not copy the past values")
    def sync(self, params: Any) -> None:  # type: ignore[override]
        """Makes these values the past ones, for `past="epoch"`.

        Call it when an epoch ends, after the `record` of its last step.
        """
        with self._tree.seen(params):
            super().sync()

    @noted("Could not begin a new lineage")
    def restart(self, initial_step: int, params: Any) -> None:  # type: ignore[override]
        """Starts a new lineage because training starts again, or goes back to a checkpoint.

        Args:
            initial_step: the step of the current values.
            params: these values.
        """
        with self._tree.seen(params):
            super().restart(initial_step)

    @noted("Could not declare masks")
    def declare(
        self,
        params: Any,
        *,
        trainable: Declared = None,
        kept: Declared = None,
        opt_state: Any = None,
    ) -> None:
        """Declares which weights are held from the next step on, if that changes during training.

        Args:
            params: the current pytree: held weights are compared with it from now on.
            trainable: as in the constructor; None: as before.
            kept: as in the constructor; None: as before.
            opt_state: the current optimizer state, as for `record`.
        """
        with self._tree.seen(params, opt_state):
            self._declare(by_name(params, trainable, "trainable"), by_name(params, kept, "kept"))
            self.observe()

    def _look_last(self) -> None:
        """See `Recording`: of the last call, if it is left out and the program still has them."""
        latest = self._latest and self._latest()
        if latest is not None and self._measuring.left_out >= 0:  # it isn't after a restart
            with self._tree.seen(latest):
                super()._look_last()
