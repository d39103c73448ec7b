"""`aioinformer bench`: measure an informer on an API server."""
