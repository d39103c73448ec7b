"""Validation of kinds that extend the API server: webhooks, admission policies and API services."""
