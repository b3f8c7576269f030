"""Research with tools, in which a model looks up documentation before the answer is written."""
