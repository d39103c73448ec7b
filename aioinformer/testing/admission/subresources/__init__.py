"""Subresources of pods that act: binding, eviction, logs and other streams."""
