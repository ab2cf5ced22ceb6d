"""Past values of variables, and the network that they make."""
