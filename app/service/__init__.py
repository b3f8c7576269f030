"""The answer service, its middleware, and the stores that the middleware uses."""
