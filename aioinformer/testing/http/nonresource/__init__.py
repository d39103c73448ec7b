"""Requests that are about no resource: discovery, OpenAPI, health, version."""
