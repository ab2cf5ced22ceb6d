"""Networks of a graph copied inside of it, with other variables in the place of their own."""
