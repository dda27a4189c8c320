"""What survives: the sealed store, the sidecar beside the key, and the log of releases that readers see."""
