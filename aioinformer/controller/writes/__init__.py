"""The writes of reconcilers: checked before they are sent, recorded afterwards, and awaited before the next run."""
