"""The OpenAI-compatible API under /v1: chat completions, responses and models."""
