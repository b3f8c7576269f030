"""The frameworks that apidesk is compared with, each used as its documentation recommends.

The peers run in a virtual environment of their own, which `environment.py` creates.
"""
