"""The documentation as tools of the Model Context Protocol, over HTTP and stdio."""
