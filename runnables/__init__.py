"""The pipeline that answers a question, built from LangChain Runnables. Start with `pipeline.py`."""
