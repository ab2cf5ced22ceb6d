"""Arrays of NumPy, which functions return."""

from __future__ import annotations

from tests.conformance.room import Room


class Adaptor(Room):
    """A room's own way is NumPy's."""
