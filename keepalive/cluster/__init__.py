"""What is read and changed in a Kubernetes cluster; nothing of it is imported unless it is used."""
