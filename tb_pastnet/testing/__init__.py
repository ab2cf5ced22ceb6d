"""Assertions for your own tests: which weights training changed, and which it left alone.

Plain context managers for any test runner. Importing them needs NumPy and no framework.

Example:
    >>> import tb_pastnet as pastnet
    >>> "assert_frozen" in dir(pastnet.testing)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.testing.assertions import assert_frozen as assert_frozen
    from tb_pastnet.testing.assertions import assert_learns as assert_learns
    from tb_pastnet.testing.assertions import assert_only_trains as assert_only_trains

_HOMES = {
    "assert_frozen": "tb_pastnet.testing.assertions",
    "assert_learns": "tb_pastnet.testing.assertions",
    "assert_only_trains": "tb_pastnet.testing.assertions",
}

__all__ = list(_HOMES)

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
