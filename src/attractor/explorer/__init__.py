"""The explorer: a page on which one drags a token and watches the attractor move."""
