"""Turn notifications and log records into lines, and write them."""
