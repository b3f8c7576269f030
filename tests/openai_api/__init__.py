"""Tests of the OpenAI-compatible API."""
