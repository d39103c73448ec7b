"""Validation rules of custom resources, and the validation of CustomResourceDefinitions."""
