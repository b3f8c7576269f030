"""The report on recorded questions, with the gaps in the documentation."""
