"""Faults that tests inject: their kinds, their effects on requests, and the scope they are active in."""
