"""The work that one run of an untrusted log may cost a reader, counted, next to `limits`.

`limits` bound one message, but a hostile log has many. Work is counted by the stored bytes, in the
order of the log, and never in seconds: the same log reads the same in both of TensorBoard's
loaders and in `pastnet.read`. A run over its budget is shown up to there, with the note that it was
read in part. docs/reference/record_format.md has the table.
"""

from __future__ import annotations

from typing import NamedTuple


class Allowance(NamedTuple):
    """Work that is free, and work that is allowed for each stored byte in addition."""

    free: int
    per_byte: int

    def most(self, stored: int) -> int:
        """The work that so many stored bytes allow."""
        return self.free + self.per_byte * stored


CELLS = Allowance(1 << 24, 100)
"""Channels times records of one run: a recorder's logs have at most 6 for each byte."""

JSON_VALUES = Allowance(1 << 12, 8)
"""Values in one JSON payload: a recorder's have at most 2 for each byte."""

PROBE_VALUES = Allowance(1 << 24, 100)
"""Values in all messages of a run's probe: a recorder's have at most 13 for each byte."""

SKETCH_VALUES = Allowance(1 << 24, 100)
"""Values in all sketches of a run: a recorder's have 1 for 2 bytes; of layers at rest more."""
FOLLOWED_VALUES = Allowance(1 << 24, 100)
"""Values in all messages of a run about weights that follow others: a recorder's have fewer."""

GROUP_RATES = Allowance(1 << 16, 1)
"""Groups times records of one lineage: a recorder stores 8 bytes for each."""

COMPARED_BYTES = Allowance(1 << 16, 50)
"""Bytes of what was compared in a lineage, once inflated: beyond them a recorder deflates less."""

FIGURES = 1 << 19
"""Layers times records of one run beyond those stored: an overview has a figure for each."""

MAX_NAMES = 1 << 18
"""Layers, variables and groups in all descriptions of one run; a network of 300 layers has 900."""

MAX_CHANNELS = 1 << 23
"""Channels of all variables of one run together: 8 times a base of a million."""
