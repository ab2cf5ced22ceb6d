"""Masks beside a model that is built: they hold its weights on the optimizer."""
