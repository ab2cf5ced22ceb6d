"""The command line: logs checked, reported and exported. No TensorFlow, no TensorBoard running."""
