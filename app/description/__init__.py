"""What the OpenAPI document says: every body, and every way to fail."""
