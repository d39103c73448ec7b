"""Factories: informers of several resources, namespaces and selections that start and stop together."""
