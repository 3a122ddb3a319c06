"""What each subcommand does, apart from the declaration of its options."""
