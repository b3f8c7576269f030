"""The HTTP API and the web page: one module per route or group of routes."""
