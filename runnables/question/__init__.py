"""Analysis of a question: condense follow-ups, extract pasted details, classify."""
