"""Measures apidesk with the documents of large platforms."""
