"""The ring of a controller: replicas that share its objects, by one object that says which replica owns which slot."""
