"""Tests of Sync and of the catalogue that it writes."""
