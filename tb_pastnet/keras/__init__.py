"""Keras and TensorFlow: their source of weights, past copies, masks held, the audit, clones, the callback."""
