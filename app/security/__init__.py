"""Authentication, scopes, rate limits and security headers."""
