"""Calls chat models and parses their replies into validated objects."""
