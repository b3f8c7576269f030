"""Reads a question: condenses follow-ups, extracts pasted details, classifies."""
