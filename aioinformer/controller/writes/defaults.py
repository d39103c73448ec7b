"""What holds for the managers of this process that do not say otherwise."""

#: The default of `Manager(strict_writes=…)`. The pytest plugin sets it, so that tests fail at writes that are not
#: declared.
strict_writes = False
