"""Numbers to pictures. Nothing here computes a promise or a protocol."""
