"""Objects of Kubernetes, as the vendor's components read and write them."""
