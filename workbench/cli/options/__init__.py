"""What each command can be asked: its options, apart from its work, so that `--help` answers at once."""
