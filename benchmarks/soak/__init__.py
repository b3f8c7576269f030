"""Does it stay right? Everything at once, for minutes: `python -m benchmarks.soak`."""
