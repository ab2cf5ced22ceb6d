"""The TensorBoard plugin: from the data provider to the routes. It never imports TensorFlow."""
