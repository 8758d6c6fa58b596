"""What users have, checked and brought to draws, allocation probabilities and similarities."""
