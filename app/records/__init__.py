"""What is kept of each question: its text, its answer and what was read from it, without secrets."""
