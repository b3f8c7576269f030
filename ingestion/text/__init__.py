"""Text processing: languages, words and Markdown."""
