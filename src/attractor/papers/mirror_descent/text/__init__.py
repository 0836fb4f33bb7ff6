"""Text classifiers: where their read-out looks, on made-up texts and on film reviews."""
