"""Is it fast? What was promised of speed, beside other systems: `python -m benchmarks.performance`."""
