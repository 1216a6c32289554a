"""The summary of jobs, and who reads it."""
