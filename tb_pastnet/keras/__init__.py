"""Recording while a network trains: needs TensorFlow."""
