"""The queues of deltas between a reflector and its controller loop."""
