"""Golden files of the record format."""
