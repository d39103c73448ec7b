"""The functions and operators of CEL."""
