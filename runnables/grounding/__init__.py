"""What may be said: a drafted answer is compared with what it cites."""
