"""Votes of plugins."""
