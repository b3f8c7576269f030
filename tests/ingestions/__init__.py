"""Tests of ingestion runs."""
