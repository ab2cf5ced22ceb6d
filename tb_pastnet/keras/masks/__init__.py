"""Masks next to a model that is built: they hold its weights on the optimizer."""
