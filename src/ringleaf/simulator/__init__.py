"""The decision core without a cluster: scenarios in, answers out."""
