"""The vocabulary of the API: served resources, routes, selectors, encodings, statuses, validation of metadata."""
