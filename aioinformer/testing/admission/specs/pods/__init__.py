"""Validation of pods and their updates."""
