"""What a trained model says of new input."""
