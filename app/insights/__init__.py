"""What many questions together say about the documentation.

terms.py tells which words of a question carry its topic, grouping.py puts questions of one topic together,
gaps.py finds the topics that the documentation does not answer. All three are pure: no store, no model.
insights.py makes the report: counts.py counts kept questions (apis.py those about APIs), suspects.py holds
those that may show a gap, documentation.py knows what is documented; csv_tables.py is for spreadsheets.
"""
