"""Numbers against plain NumPy on the weights of each step."""
