"""OpenAI's chat completions, as far as a client that chats needs them: the desk is a model there."""
