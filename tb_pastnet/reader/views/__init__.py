"""From arrays to what each route answers: pure functions."""
