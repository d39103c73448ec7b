"""One object of a cache: its bytes, its fields, and the views that readers get."""
