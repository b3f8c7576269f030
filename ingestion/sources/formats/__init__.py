"""Parsers of text, HTML, PDF, Word and CSV files. Each parser returns a `sources.pages.PageContent`."""
