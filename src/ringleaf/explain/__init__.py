"""Decisions taken apart: surveys of nodes, and placements compared."""
