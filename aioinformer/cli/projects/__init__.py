"""The commands that make files: `crd` of a class, `manifests` of a manager, and `init` of a new project."""
