"""Specifications of objects that extend the API server: webhooks, admission policies, API services."""
