"""`apidesk replay`: kept questions asked again, and what has changed.

result.py says what a change is, run.py asks, report.py prints, plot.py draws.
"""
