"""The inputs of controllers: which changes of which objects make which keys run."""
