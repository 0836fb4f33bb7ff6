"""Every public callable, called with hostile arguments: one wrong at a time.

Each parameter of each call in ``calls`` is given every value of ``hostile`` in turn, and ``judge``
says whether what comes back is a refusal that names the argument, a right answer, or a finding.
``python -m fuzzing.arguments`` runs the whole table and writes a report.
"""
