"""What is asked: a question read by a model, or by rules."""
