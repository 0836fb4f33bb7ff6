"""Claims and figures of ten further papers, and of folklore, for ``attractor``."""
