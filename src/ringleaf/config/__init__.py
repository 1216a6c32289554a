"""The configuration: what it may say, what it says, and its reader."""
