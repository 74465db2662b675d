"""Mail to people who confirmed their address."""
