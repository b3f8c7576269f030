"""Tests of collections on every kind of store."""
