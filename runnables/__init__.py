"""From a question to an answer, as LangChain Runnables. Start with `pipeline.py`."""
