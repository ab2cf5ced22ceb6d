"""The options of Recorders and callbacks: one declaration, one order, the same checks.

Each constructor lists those that it has. `tests/contract/test_parity.py` compares them with this
declaration, and gives a reason for each difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from tb_pastnet.core.checks import is_number
from tb_pastnet.core.expected import Expect, declared
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.fitting import config_fits
from tb_pastnet.record import alerts, scalars, schedule
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_exit_timeout

Own = TypeVar("Own", bound="Options")

WAYS_TO_AUDIT = VALUES, PRINTS = "values", "fingerprints"
"""How held weights may be compared, besides True and False."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user wishes, checked as far as that needs no network.

    Raises InvalidArgument for a value that can't be used.
    """

    stops: ClassVar[bool] = False  # whether `on_violation` may be "stop"

    every: int = 10
    past: str | int = "previous"
    variables: Any = None
    channel_axis: Any = None
    learning_rate: Any = None
    trainable: Any = None
    kept: Any = None
    masks: Any = None
    follows: Any = None
    expect: Expect = None
    config: Mapping[str, Any] | None = None
    audit: bool | str = True
    probe: Any = None
    probe_every: int = 1
    budget: float | None = None
    on_violation: alerts.Wish = alerts.LOG
    log: scalars.LogFunction | None = None
    initial_step: int | None = None
    exit_timeout: float = EXIT_TIMEOUT

    def __post_init__(self) -> None:
        schedule.check(self.every, self.past, self.budget, self.probe_every)
        schedule.check_start(self.initial_step)
        _check_audit(self.audit)
        wish = alerts.checked(self.on_violation, stops=self.stops)
        object.__setattr__(self, "on_violation", wish)
        declared(self.expect)
        scalars.check(self.log)
        check_exit_timeout(self.exit_timeout)
        object.__setattr__(self, "config", _config(self.config))

    @classmethod
    def of(cls: type[Own], given: Mapping[str, Any]) -> Own:
        """Those among the local names of a constructor.

        Example:
            >>> Options.of({"self": None, "logdir": "runs/a", "every": 5}).every
            5
        """
        return cls(**{name: given[name] for name in NAMES if name in given})

    def schedule(self, *, measures_all: bool = False) -> schedule.Schedule:
        """A new schedule of records; see there.

        A user's `log` gets each record that is due, stored or not.
        """
        wanted = self.every, self.past, self.initial_step, self.budget
        measures_all = measures_all or self.log is not None
        return schedule.Schedule(*wanted, probe_every=self.probe_every, measures_all=measures_all)

    def only(self, *names: str) -> dict[str, Any]:
        """Some of them, by name."""
        return {name: getattr(self, name) for name in names}


class TrainerOptions(Options):
    """Those of a callback, which can stop its trainer."""

    stops = True


NAMES = tuple(field.name for field in fields(Options))
"""All options, in the order in which each constructor lists its own."""


def _check_audit(audit: Any) -> None:
    if isinstance(audit, bool) or (isinstance(audit, str) and audit in WAYS_TO_AUDIT):
        return
    raise InvalidArgument(
        f"Could not audit held weights: expected audit= one of True, False, 'values' and "
        f"'fingerprints', got {audit!r:.60}. True takes values of little, fingerprints of much."
    )


def _config(given: Any) -> dict[str, str | int | float | bool | None]:
    """A user's mapping as it is stored: numbers of any package as those of Python."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise _wrong_config(f"a {type(given).__name__}", "Pass vars(args) of a namespace.")
    config = {name: _value(name, value) for name, value in given.items()}
    if not config_fits(config):
        raise _wrong_config("names or texts that are too long", "Leave out what isn't compared.")
    return config


def _value(name: Any, value: Any) -> str | int | float | bool | None:
    if not isinstance(name, str):
        raise _wrong_config(f"the name {name!r:.60}", "Use texts as names.")
    if not getattr(value, "shape", ()) and callable(getattr(value, "item", None)):
        value = value.item()  # a scalar of NumPy or a framework
    if value is None or isinstance(value, bool | str):
        return value
    if not is_number(value):
        raise _wrong_config(
            f"{name}={value!r:.60}", f"Write numbers or texts, such as str(…); {name}.… for parts."
        )
    if isinstance(value, int):
        return int(value) if abs(value) < 2**63 else float(value)
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _wrong_config(got: str, mend: str) -> InvalidArgument:
    return InvalidArgument(
        f"Could not note the configuration: expected config= a flat mapping of names to numbers or "
        f"texts, such as {{'lr': 0.1}}, got {got}. {mend}"
    )
