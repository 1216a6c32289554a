"""Objects of Kubernetes in, values out, and back."""
