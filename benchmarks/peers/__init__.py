"""The frameworks that apidesk is measured against, each as its own documentation teaches it.

They live in a virtual environment of their own (`environment.py`); every other module here runs there.
"""
