"""What must be true of pods and their containers, and what may be changed about them."""
