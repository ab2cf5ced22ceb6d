"""Networks with variables of their own, made from what is left of another."""
