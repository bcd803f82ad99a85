"""What is wrong with manifests, or missing in a cluster, before anything is applied."""
