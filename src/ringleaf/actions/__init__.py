"""The verbs of the cycle, in the order of the configuration."""
