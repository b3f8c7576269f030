"""Does the API do as it is described? schemathesis tries: `python -m benchmarks.fuzz`."""
