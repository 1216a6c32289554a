"""Rules: tables first, then small pure functions that read them."""
