"""HTTP around the routes: requests checked, answers packed, one shape of errors."""
