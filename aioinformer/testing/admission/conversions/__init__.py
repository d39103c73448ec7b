"""Built-in kinds that two API versions serve from one store."""
