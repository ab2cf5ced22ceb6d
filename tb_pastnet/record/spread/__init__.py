"""Weights that are spread over ranks: each rank measures its own rows, and one writes all."""
