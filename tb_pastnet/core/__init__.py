"""The maths, in NumPy and the standard library: pure, no I/O, no clock."""
