"""LangChain loaders that keep headings, tables and URLs, unlike those of langchain-community."""
