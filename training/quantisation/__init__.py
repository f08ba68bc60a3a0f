"""Forms of the networks in 8 bits."""
