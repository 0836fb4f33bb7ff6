"""The l_1 and the l_inf norm: linear programs over the entries."""
