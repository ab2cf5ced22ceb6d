"""Masks on single weights of a graph."""
