"""The same question again: answered once, at the same time (flights.py) or later (answers.py)."""
