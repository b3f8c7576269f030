"""Figures of speed, memory, retrieval and reliability; `make` lists what takes them."""
