"""OpenAPI 3.0, 3.1 and Swagger 2.0 descriptions: one operation, one document."""
