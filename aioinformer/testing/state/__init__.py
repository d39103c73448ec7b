"""The state of the server: storage, rules of writing, deletion, and files."""
