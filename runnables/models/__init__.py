"""How a language model is asked, and how a validated object comes back."""
