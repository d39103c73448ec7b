"""Patches: what each kind of them makes of a document."""
