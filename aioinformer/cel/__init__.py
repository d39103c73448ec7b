"""The part of the Common Expression Language (CEL) that Kubernetes uses.

That is in validation rules of custom resources, and in the conditions of webhooks. This room imports no other one.
"""
