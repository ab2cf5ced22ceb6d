"""See which channels of a network move, are frozen or are pruned."""

__version__ = "0.1.0"
