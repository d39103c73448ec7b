"""`aioinformer watch`: print the notifications of an informer for each resource."""
