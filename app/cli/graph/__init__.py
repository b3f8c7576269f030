"""Diagrams of the pipeline."""
