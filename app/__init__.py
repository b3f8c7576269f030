"""The outside: HTTP and the command line. Wires everything; nothing imports it."""
