"""Copies of networks, with their own variables, from tensors, a model or a function."""
