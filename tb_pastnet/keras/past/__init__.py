"""Past values of variables, and the past network."""
