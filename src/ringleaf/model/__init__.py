"""Nouns: frozen values, and the one mutable thing, the cluster."""
