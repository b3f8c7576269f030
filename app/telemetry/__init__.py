"""What an operator sees: traces, metrics, logs."""
