"""Reads over HTTP: get, list and watch."""
