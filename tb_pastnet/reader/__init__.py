"""Reads logs: from files or TensorBoard to records, figures and answers."""
