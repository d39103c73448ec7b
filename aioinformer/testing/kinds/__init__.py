"""What the API knows of its built-in kinds: defaults, what may be changed, what must be true of a specification."""
