"""`aioinformer demo`: informers that watch a simulated workload in the embedded API server."""
