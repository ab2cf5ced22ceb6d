"""The freeze audit: what of the held weights moved, and why."""
