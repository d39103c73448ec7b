"""Built-in kinds: defaults, initial values and warnings."""
