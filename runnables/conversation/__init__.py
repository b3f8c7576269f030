"""Earlier turns of a conversation: small talk, follow-ups and their subject."""
