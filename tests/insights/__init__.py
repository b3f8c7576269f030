"""Tests of the insights report."""
