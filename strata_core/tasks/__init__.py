"""What a model can be trained to do, one folder a task."""
