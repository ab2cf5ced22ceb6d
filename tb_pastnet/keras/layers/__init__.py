"""Layers that own their masks."""
