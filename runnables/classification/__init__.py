"""Classification of a question: its type, and how likely it is about the platform."""
