"""Keras on JAX and on PyTorch: its variables are read as arrays, without TensorFlow."""
