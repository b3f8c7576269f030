"""Asking recorded questions again."""
