"""Networks as graphs: traced, read, compared, and called with other state than their own."""
