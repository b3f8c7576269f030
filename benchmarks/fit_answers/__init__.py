"""Fits the ranking, the confidence and the topic gate of answers without a model."""
