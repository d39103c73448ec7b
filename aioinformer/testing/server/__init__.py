"""What a test works with: the server, its contents, objects by the thousand, workloads and faults."""
