"""Requests and answers: lists, watches, writes, and the connections that carry them."""
