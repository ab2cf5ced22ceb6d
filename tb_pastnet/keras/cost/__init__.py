"""What recording costs a training, and how that is kept under a budget."""
