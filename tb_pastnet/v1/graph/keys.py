"""The collections of our own in a graph."""

from __future__ import annotations

MASK_VARIABLES = "pastnet_mask_variables"
"""The collection of the variables that masks are kept in."""

PAST_VARIABLES = "pastnet_past_variables"
"""The collection that shadow variables are in, beside LOCAL_VARIABLES."""
