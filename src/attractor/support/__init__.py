"""What everything stands on: errors, arguments, precision, randomness, threads, files."""

from attractor.support.first_use import import_on_first_use

import_on_first_use(__name__)
