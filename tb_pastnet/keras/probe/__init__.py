"""How far a network's outputs move on a probe batch, from its past to now."""
