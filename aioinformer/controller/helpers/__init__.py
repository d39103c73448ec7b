"""What most reconcilers write: finalizers, the status and sets of objects."""
