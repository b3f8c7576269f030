"""A question becomes an answer: LangChain Runnables, one step a file. Read `pipeline.py` first."""
