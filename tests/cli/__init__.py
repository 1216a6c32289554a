"""The commands, as people and scripts meet them."""
