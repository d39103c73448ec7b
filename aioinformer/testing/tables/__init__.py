"""Tables: the rendering of objects that `kubectl get` prints."""
