"""Reads the API operations that Markdown pages describe, whatever their layout."""
