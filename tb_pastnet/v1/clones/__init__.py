"""Copies of a graph's networks inside the graph, with other variables."""
