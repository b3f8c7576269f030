"""Soak test: `python -m benchmarks.soak`."""
