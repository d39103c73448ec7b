"""Schemas of custom resources: validation rules, and the checks of a definition."""
