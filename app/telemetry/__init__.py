"""What an operator sees: logs, timings."""
