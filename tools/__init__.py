"""What dev.py is made of: the environment, Node, Chromium and the steps. Standard library only."""
