"""State in files: manifests, databases, and how a server loads them."""
