"""Field ownership and server-side apply."""
