"""Time: events in, instructions out."""
