"""Parsers of text, HTML, PDF and Word files. Each parser returns a PageContent."""
