"""Figures of speed and memory, as ratios taken in one run; `python -m benchmarks.ingestion`."""
