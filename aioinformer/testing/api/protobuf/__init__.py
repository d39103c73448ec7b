"""Decoding of objects in protobuf, which kubectl sends for some kinds."""
