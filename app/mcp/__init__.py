"""The documentation as tools of the Model Context Protocol, for coding agents.

`toolbox.py` knows what the tools do, `protocol.py` how they are called; the SDK takes a moment to load,
so only what is asked imports it.
"""
