"""Validation of pods, their containers and their updates."""
