"""What the engine says to what it hears."""
