"""The rules of the vendor's tables and of the decisions, one test per row."""
