"""No figures: nothing of it is published."""

ORDER = ()
