"""Own writes: a client that records them, and waits until the caches of this process show them.

Controllers use it between the runs of a key. `aioinformer.controller` exports `OwnWrites`.
"""
