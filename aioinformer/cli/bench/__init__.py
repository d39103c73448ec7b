"""`aioinformer bench`: measure list, watch and latency of an informer on your API server."""
