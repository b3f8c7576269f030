"""Benchmarks of speed, memory, retrieval and reliability; `make` lists the commands."""
