"""What many questions together say about the documentation.

terms.py tells which words of a question carry its topic, grouping.py puts questions of one topic together,
gaps.py finds the topics that the documentation does not answer. All of it is pure: no store, no model.
"""
