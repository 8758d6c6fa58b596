"""What several uncertain experts say of pairs of items: who shares a view, who is reliable, and each view's clusters."""
