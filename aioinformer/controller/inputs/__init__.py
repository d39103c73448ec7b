"""The inputs of controllers: which changes of which objects make which keys run.

`aioinformer.controller` exports `Primary`, `Owns`, `Watch`, the predicates and the sources.
"""
