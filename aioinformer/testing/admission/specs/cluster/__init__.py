"""What must be true of data, of nodes and limits, of rights, and of what rules a cluster."""
