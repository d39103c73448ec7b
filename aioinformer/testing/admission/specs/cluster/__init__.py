"""Validation of data, nodes, limits, roles and the kinds that configure a cluster."""
