"""Golden scenarios: stories with the placements and messages that must come out."""
