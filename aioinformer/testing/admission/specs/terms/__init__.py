"""What checks of many kinds have in common: selectors, references, numbers, paths, and how values are quoted."""
