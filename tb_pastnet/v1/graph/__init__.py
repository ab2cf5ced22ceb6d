"""A graph: its variables, what they are used for, and the session that has their values."""
