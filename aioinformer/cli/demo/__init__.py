"""`aioinformer demo`: the embedded API server with a changing workload, and the informers that watch it."""
