"""Benchmarks of speed, compared with other systems: `python -m benchmarks.performance`."""
