"""One file for each optimizer or family of them."""
