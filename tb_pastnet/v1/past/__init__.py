"""Past values of a graph's variables, and the network that they make."""
