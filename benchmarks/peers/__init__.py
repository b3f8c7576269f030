"""The frameworks that apidesk is compared with, each used as its documentation recommends.

They have their own virtual environment (`environment.py`), in which all other modules here run.
"""
