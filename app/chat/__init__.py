"""Questions one after the other at a terminal: what is typed, what it means, what is printed."""
