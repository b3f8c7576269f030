"""The frameworks that apidesk is compared with, each used as its documentation recommends.

All modules except `environment.py` run in a virtual environment of their own.
"""
