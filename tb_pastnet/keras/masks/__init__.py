"""Masks for built models: they hold weights through the optimizer."""
