"""From a model to its variables: names, roles, channels."""
