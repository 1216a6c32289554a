"""The voters that Ringleaf brings."""
