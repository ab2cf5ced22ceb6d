"""From variables and their past copies to statistics, when they are due."""
