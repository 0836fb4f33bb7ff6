"""The contract of claims: how they are declared, found and checked, and whether they can tell."""
