"""What the API knows of its built-in kinds: defaults, what the server says itself, what it warns of."""
