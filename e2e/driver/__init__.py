"""Runs a scenario on machines that systemd-nspawn or QEMU makes.

It speaks the NixOS test driver's API, so that a script runs here and there unchanged. It knows
nothing of what is tested: a scenario is a folder with a script and a file tree for each node.
"""
