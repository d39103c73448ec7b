"""State in files: manifests and databases."""
