"""Keras and TensorFlow: their source, masks held, the audit, past networks, clones, the callback."""
