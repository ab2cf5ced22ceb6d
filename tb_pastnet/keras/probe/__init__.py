"""How far a network's outputs move on a probe batch: its past against itself."""
