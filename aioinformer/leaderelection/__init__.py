"""Leader election with Leases, as in client-go's tools/leaderelection."""
