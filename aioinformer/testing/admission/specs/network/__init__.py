"""Validation of services, endpoints, ingresses and network policies."""
