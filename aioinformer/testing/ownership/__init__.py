"""Who owns which fields of an object."""
