"""Scenario files in, answers out."""
