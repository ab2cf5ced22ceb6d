"""From TensorBoard's data provider to arrays: read, checked, joined, kept up to a ceiling."""
