"""Parsers of single files: text, HTML, PDF and Word. Each returns a PageContent."""
