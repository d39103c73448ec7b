"""Values and rules that defaults, specifications and warnings share."""
