"""The stored bytes: messages of each kind, their tags and names, event files and folders; no TensorFlow."""
