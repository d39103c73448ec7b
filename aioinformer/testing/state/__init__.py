"""What the cluster holds, what may become of it, and where it comes from."""
