"""What was asked: each question is kept with what became of it.

record.py makes the record of an answer, recorded.py answers and leaves one; spool.py holds records until
the database has them, store.py is the database, keeper.py is who the rest of the house talks to.
"""
