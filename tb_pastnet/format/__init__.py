"""Event files as they lie on disk, read without TensorFlow and without TensorBoard's loaders."""
