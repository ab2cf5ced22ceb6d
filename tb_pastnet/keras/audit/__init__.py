"""The freeze audit: which held weights moved, and why."""
