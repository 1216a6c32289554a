"""Compares runs of the simulator: which policy is better, by how much, how sure.

Start reading at ``compare``.
"""
