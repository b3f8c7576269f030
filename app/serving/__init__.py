"""The processes of the server, and the address file by which commands find it."""
