"""What must be true of what makes pods, scales them, and says how many may be missing."""
