"""Schemas: typed fields, custom resources and their definitions, decoding and published OpenAPI documents."""
