"""What each action of the cycle does."""
