"""The HTTP API and the web pages: a module per group of routes, and the modules that they share."""
