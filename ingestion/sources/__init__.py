"""One reader a format; each turns a source of platform.toml into SourceDocuments."""
