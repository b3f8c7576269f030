"""What a model may look up before it answers: `registry.py` lists it, `research.py` lets it call."""
