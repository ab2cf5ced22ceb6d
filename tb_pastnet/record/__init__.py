"""What records a training, for every framework: imports none of them."""
