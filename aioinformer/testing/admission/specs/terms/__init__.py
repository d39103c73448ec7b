"""Checks shared by many kinds: selectors, references, numbers, paths, and how values are quoted."""
