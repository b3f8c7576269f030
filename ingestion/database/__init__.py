"""The SQL database: engine, tables and migrations."""
