"""What kube-apiserver checks, defaults and renders for built-in kinds; loaded when a request first needs it."""
