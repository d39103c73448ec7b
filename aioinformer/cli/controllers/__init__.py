"""The commands for controllers: `check` shows what a manager needs of a cluster, `run` runs it."""
