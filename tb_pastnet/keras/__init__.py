"""Keras and TensorFlow: their source, held masks, the audit, past networks, clones, callbacks."""
