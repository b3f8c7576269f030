"""Calls of chat models, and parsing of their replies into validated objects."""
