"""Objects as rows of a table, for people."""
