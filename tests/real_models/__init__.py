"""The desk with real models, which run here: `make test-models`."""
