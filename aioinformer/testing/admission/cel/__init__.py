"""The Common Expression Language, as far as rules of custom resources speak it."""
