"""A study before it starts: the protocol, the tasks, the control items."""
