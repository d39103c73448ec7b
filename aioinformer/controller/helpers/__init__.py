"""What most reconcilers write: finalizers, the status, sets of objects, and expectations."""
