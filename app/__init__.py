"""The HTTP service and the command line. Composes the other packages; none of them imports it."""
