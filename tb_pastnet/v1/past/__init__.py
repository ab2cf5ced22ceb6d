"""Past values of a graph's variables, and the past network."""
