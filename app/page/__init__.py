"""The page at `/`, its embeddable form, and the questions that it suggests."""
