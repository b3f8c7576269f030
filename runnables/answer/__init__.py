"""What is said: chunks become a drafted answer."""
