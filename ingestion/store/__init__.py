"""The store: the collection of chunks, with its vocabulary and its catalogue.

The vocabulary contains how often each word occurs in the chunks. The catalogue contains one entry per
document.
"""
