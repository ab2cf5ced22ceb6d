"""Masks that hold single weights: on optimizers, and in layers that own them."""
