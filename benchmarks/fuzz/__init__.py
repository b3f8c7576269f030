"""Fuzz tests of the API against its OpenAPI description: `python -m benchmarks.fuzz`."""
