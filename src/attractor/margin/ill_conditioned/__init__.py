"""Problems close to infeasible or badly scaled, in every norm: accurate steps, one at a time."""
