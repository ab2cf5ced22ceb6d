"""Upper bounds on what a reader accepts, checked before anything is allocated.

A log directory is untrusted input. The bounds are far above what the writer produces, and low
enough that a hostile record can't exhaust the memory of TensorBoard. The writer obeys the same
table: what a reader would refuse is left out with a reason (`format/fitting`), and no encoder
packs it.
"""

from __future__ import annotations

MAX_CHANNELS = 1 << 23
"""Channels of one variable (an embedding of 8 million rows)."""

MAX_DIMENSIONS = 1 << 6
"""Dimensions of one variable; NumPy itself has at most 64."""

MAX_WEIGHTS = 1 << 44
"""Weights of one variable: sums over all variables of a run stay exact in 64 bits."""

MAX_RECORDS = 1 << 12
"""Records in one block; the writer puts at most 16."""

MAX_GROUPS = 1 << 12
"""Groups of weights with their own learning rate."""

MAX_CELLS = 1 << 24
"""Channels times records of one block: 288 MiB once all its statistics are decoded."""

MAX_TOGETHER = 1 << 10
"""Channels of several variables in one block; the writer puts at most 256."""

MAX_HEADS = 1 << 12
"""Bytes that name the statistics of one block; the writer puts 10."""

MAX_MESSAGE = 1 << 28
"""Bytes of one sealed message, the largest that a data provider call carries."""

MAX_JSON = 1 << 24
"""Bytes of a JSON payload once inflated."""

MAX_JSON_VALUES = 1 << 21
"""Values in a JSON payload: what the writer fills it with takes at least 8 bytes for each."""

MAX_MASK = 1 << 31
"""Elements of one mask: 256 MiB once inflated, a bit each."""

MAX_VIOLATIONS = 1 << 16
"""Violations in one message; the writer puts more into several."""

MAX_STANDING = 1 << 16
"""Changes of why variables are idle in one message; the writer puts more into several."""

MAX_INPUTS = 1 << 8
"""Inputs of a probe, dimensions of one of them, and measures."""

MAX_PLACES = 1 << 16
"""Places at which the outputs of one probe are compared."""

MAX_VALUES = 1 << 22
"""Measures times records times places of one message: 16 MiB once decoded."""

MAX_COMPARED = 1 << 22
"""Bytes of what was compared in a lineage, once inflated."""

MAX_NUMBERS = 1 << 8
"""Totals of one overhead; there are 9."""

MAX_NAME = 1 << 14
"""Characters of a name of a layer, a variable or a note. A writer stores at most as many bytes of
UTF-8: then an address has room for a name."""

MAX_STEP = 1 << 53
"""Steps stay exact as the doubles that the page reads."""
