"""The queue of requests: which key runs next, when, and why. `aioinformer.workqueue` has `RequestQueue`."""
