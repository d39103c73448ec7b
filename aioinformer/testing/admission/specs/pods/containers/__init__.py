"""Specifications of containers."""
