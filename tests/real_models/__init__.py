"""Tests with real models on this machine: `make test-models`."""
