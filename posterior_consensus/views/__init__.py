"""More than one answer: what a posterior holds that a single partition cannot show."""
