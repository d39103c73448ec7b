"""Format notifications and log records as lines, and write them without blocking the event loop."""
