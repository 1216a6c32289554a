"""Tests mirror the packages they test; ``oracle`` is written apart from the code."""
