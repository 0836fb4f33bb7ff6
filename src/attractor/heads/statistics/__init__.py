"""Rules that selections follow, against chance, and all heads tested together."""
