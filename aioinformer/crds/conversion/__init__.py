"""Conversion between versions of a custom resource: declared steps, and what keeps the fields that one lacks."""
