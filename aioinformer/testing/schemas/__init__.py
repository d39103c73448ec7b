"""Schemas at work: fields with their types, custom resources and their definitions, what Go makes of JSON."""
