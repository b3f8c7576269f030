"""LangChain loaders that keep headings, tables and addresses, which those of langchain-community lose."""
