"""What a corpus hides: collocation, partial orders, graphs, and what theory assumes."""
