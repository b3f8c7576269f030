"""LangChain loaders that keep what those of langchain-community lose, such as headings."""
