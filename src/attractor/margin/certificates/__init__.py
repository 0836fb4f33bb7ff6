"""What proves a solution, or that there is none: certificates, exact points, contradictions."""
