"""Expected losses and similarities of pairs."""
