"""Validation of containers."""
