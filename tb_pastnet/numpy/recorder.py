"""Records arrays that functions return, in the user's own training loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.axes import channel_axis as axis_of
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows, follow_pairs
from tb_pastnet.core.names import Called, Names
from tb_pastnet.core.subject import check_subject
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.array_recorder import (
    ArrayRecorder,
    ArrayWeight,
    Declared,
    Rate,
    RatedSource,
)
from tb_pastnet.record.device_array import tensor_values
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.options import Options
from tb_pastnet.record.overhead_timer import metered
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.record.weight import Array, Network, names_of

Read = Callable[[], npt.ArrayLike]
AxisOverrides = Mapping[str, int | tuple[int, ...]]


@answered
class Recorder(ArrayRecorder):
    """Records per channel how far arrays are from past values, for the PastNet tab.

    Each array is read by a function, at records and one step before them, and released at once. It
    may be a view of the trained memory.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    failures are logged once per cause (logger `tb_pastnet`), counted, and shown in the tab.

    Args:
        logdir: the run's directory, local or in a store such as "s3://bucket/runs/a".
        arrays: a function for each name, such as "dense/kernel", that returns the current array,
            always of the same shape and dtype. The part before the last "/" is its layer. Arrays of
            no floating dtype, or without elements, are skipped: the log lists them.
        every: a record is due when `step // every` grows, at the first step, and at the last if
            `expect_end` announces it.
        past: what weights are compared with: "previous" (one step before), "record" (the previous
            record), "epoch" (the last call of `sync`), "initial" (the current values), or k (k
            steps before).
        variables: the weights to record, as names or patterns such as `"*/kernel"`. None: all.
        channel_axis: channel axes by name, for example `{"mix/weight": 0}`; the default is the last
            axis.
        learning_rate: a number, or a function of the step.
        trainable: what updates may change, by name: False for nothing, or an array of 0 and 1, one
            for each element. Weights with 0 aren't held here: they are compared bitwise with their
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
            of them, by "fingerprints", 8 bytes per channel, or True, by values up to 64 MiB.
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

    Raises:
        InvalidArgument: there is nothing to record, a weight is no function, or `every`, `past`, an
            axis, `trainable`, `kept` or `budget` is invalid.
        UnknownName: a name fits no weight, or several.
        UnwritableLog: the log directory can't be made or written.

    Example:
        >>> import tempfile
        >>> kernel = np.ones((3, 2), np.float32)
        >>> weights = {"dense/kernel": lambda: kernel}
        >>> with Recorder(tempfile.mkdtemp(), weights, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         kernel[:, 0] *= 0.9
        ...         recorder.record(step)
        ...     recorder.flush()
        True
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        arrays: Mapping[str, Read],
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[str] | None = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: Rate = None,
        trainable: Declared | None = None,
        kept: Declared | None = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        initial_step: int | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        check_logdir(logdir)
        options = Options.of(locals())
        network = _network(arrays, variables, channel_axis, follows)
        super().__init__(
            logdir,
            network,
            lambda resting: RatedSource(network, learning_rate, resting=resting),
            options.schedule(),
            _by_name(network, trainable, "trainable"),
            _by_name(network, kept, "kept"),
            options,
        )

    @metered("Could not declare masks")
    def declare(self, *, trainable: Declared | None = None, kept: Declared | None = None) -> None:
        """Declares which weights are held from the next step on, if that changes during training.

        Args:
            trainable: as in the constructor; other weights stay as they are.
            kept: as in the constructor; other weights stay as they are.
        """
        network: Any = self._source.network
        self._declare(_by_name(network, trainable, "trainable"), _by_name(network, kept, "kept"))
        self.observe()


def _network(
    arrays: Any,
    variables: Iterable[str] | None,
    axes: AxisOverrides | None,
    follows: Follows,
) -> Network[ArrayWeight]:
    if not isinstance(arrays, Mapping):
        check_subject(arrays, "a mapping of names to functions", "record", "arrays")
        raise InvalidArgument(
            f"Could not record {arrays!r:.60}: expected arrays= a mapping of names to functions, "
            f"got {type(arrays).__name__}. Write {{'dense/kernel': lambda: kernel}}."
        )
    for name in arrays:
        if not isinstance(name, str):
            raise InvalidArgument(
                f"Could not record {name!r:.60}: expected arrays= with names, got one of type "
                f"{type(name).__name__}. Write a name such as 'dense/kernel'."
            )
    values: dict[str, Array] = {}
    skipped = []
    for name, read in arrays.items():
        value = _first(name, read)
        reason = _unusable(value)
        if reason is None:
            values[name] = value
        else:
            skipped.append((name, reason))
    named = Names({name: Called(value.shape) for name, value in values.items()})
    moved = follow_pairs(named, follows, named.all)
    given = named.keyed(axes, "channel_axis")
    everything = []
    for name, value in values.items():
        axis = (
            explicit_axis(given[name], value.shape, name)
            if name in given
            else axis_of((), name, value.shape)
        )
        form = value.shape, value.dtype.name
        everything.append(
            ArrayWeight(
                name, *form, axis, partial(_read, name, arrays[name], form), follows=name in moved
            )
        )
    shown = "a mapping of functions"
    return Network.of(everything, variables, skipped=skipped, shown=shown, follows=moved)


def _first(name: str, read: Read) -> Array:
    """The array that a function returns; raises InvalidArgument if it isn't a function."""
    if not callable(read):
        raise InvalidArgument(
            f"Could not record {name!r:.100}: expected a function that returns an array, got "
            f"{type(read).__name__}. Write lambda: array."
        )
    return _array(read())


def _unusable(value: Array) -> str | None:
    if not _is_float(value.dtype):
        return f"its dtype {value.dtype.name} isn't a floating one"
    return None if value.size else "it has no elements"


def _array(value: Any) -> Array:
    # NumPy's own way would leave a tensor of torch with a storage that can't be resized.
    tensor = hasattr(value, "untyped_storage") and hasattr(value, "detach")
    return tensor_values(value) if tensor else np.asarray(value)


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is NumPy's, or like bfloat16 of another package; structures and bytes aren't."""
    registered = dtype.kind == "V" and dtype.isbuiltin == 2
    return dtype.kind == "f" or (registered and bool(dtype.type(0.5) == 0.5))


def _read(name: str, read: Read, form: tuple[tuple[int, ...], str]) -> Array:
    value = _array(read())
    if (value.shape, value.dtype.name) != form:
        raise InvalidArgument(
            f"Could not read {name!r}: expected {form[1]}{list(form[0])}, got "
            f"{value.dtype}{list(value.shape)}. Make a new Recorder if the network changes."
        )
    return value


def _by_name(
    network: Network[ArrayWeight], masks: Mapping[str, Any] | None, argument: str
) -> dict[str, Any]:
    return names_of(network.everything).keyed(masks, argument)
