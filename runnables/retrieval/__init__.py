"""Where the answer may stand: a question becomes chunks."""
