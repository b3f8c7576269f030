"""The pipeline, drawn from the object that runs."""
