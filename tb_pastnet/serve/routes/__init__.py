"""The routes, without HTTP: each takes a store and arguments and gives an answer."""
