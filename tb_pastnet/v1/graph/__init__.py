"""A graph: its variables, their use, and the session that has their values."""
