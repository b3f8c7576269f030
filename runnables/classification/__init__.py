"""Classification of a question: its type, and the probability that it is about the platform."""
