"""Controllers while they run; imports are from its modules."""
