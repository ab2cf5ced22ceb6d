"""Past networks, and clones: calling a network with other variables than its own."""
