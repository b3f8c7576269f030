"""The HTTP service and the command line. Composes the other packages; only `apidesk` imports it."""
