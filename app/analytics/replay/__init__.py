"""Asks recorded questions again, to compare their answers."""
