"""What conclusions measure, where several claims measure the same."""
