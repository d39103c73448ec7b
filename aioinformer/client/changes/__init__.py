"""Changing what was read: edits, patches, server-side apply, and what controllers write into objects."""
