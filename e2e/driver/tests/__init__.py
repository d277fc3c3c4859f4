"""The driver's own tests; none of them needs root, an image or a machine."""
