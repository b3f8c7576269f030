"""`apidesk evaluate`: how well retrieval finds the right documents, on one's own questions.

questions.py reads and writes questions, documents.py knows what each document is called, made.py makes
questions from documents; run.py asks them and measures.py judges; report.py and plots.py show the
outcome, experiments.py logs it to LangSmith where that is configured. Read run.py first.
"""
