"""The queue of requests: which key runs next, when, and why; imports are from its modules."""
