"""What many questions together say about the documentation.

terms.py tells which words of a question carry its topic, grouping.py puts questions of one topic together,
gaps.py finds the topics that the documentation does not answer. All of that is pure: no store, no model.
joined_gaps.py has a chat model join what words keep apart, where there is one.
insights.py makes the report: counts.py counts kept questions (apis.py those about APIs), suspects.py holds
those that may show a gap, documentation.py knows what is documented; csv_tables.py is for spreadsheets.
"""
