"""Insertions and deletions: what is present now, and any linear query of it (dynamic-data)."""
