"""The stored bytes: a codec for each kind of message, tags, event files, folders; no TensorFlow."""
