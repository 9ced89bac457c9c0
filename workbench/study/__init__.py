"""Studies: what the user asks for, run from beginning to end with progress, cancelling and resuming."""
