"""Masks that hold single weights of a torch module."""
