"""Writes over HTTP: bodies, options, patches, scale and tokens."""
