"""Drafts of answers: written by a model, quoted from chunks, or fixed texts."""
