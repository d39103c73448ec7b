"""The list/watch protocol: decides what to ask the server next, without I/O, clock or chance.

`list_watch` has the rules and the stages, and what follows a lost version (410). `relist` gathers a list, `changes`
reads the events of a watch, `watches` decides what follows its end, and `state` is where the protocol stands.
`messages` are the terms in which the reflector talks to it.
"""
