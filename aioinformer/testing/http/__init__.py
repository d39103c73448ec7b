"""HTTP: connections, routing, lists, watches and writes."""
