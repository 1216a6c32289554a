"""Tests of what the pages say: they run, resolve, and leave nothing out."""
