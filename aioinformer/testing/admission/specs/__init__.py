"""What must be true of objects of built-in kinds, in the words of kube-apiserver: a module for each family of kinds."""
