"""The list/watch protocol: it decides which request follows, without I/O, clock or randomness.

- `list_watch` has the rules and stages, and decides what follows a lost version (410).
- `relist` collects the objects of a list.
- `changes` reads the events of a watch.
- `watches` decides what follows the end of a watch.
- `state` is the state that they share.
- `messages` are the values that the protocol and the reflector exchange.
"""
