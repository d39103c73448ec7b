"""The schemas of everything that is served, as documents of OpenAPI."""
