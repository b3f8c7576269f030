"""Lets a model look up documentation with tools before it answers."""
