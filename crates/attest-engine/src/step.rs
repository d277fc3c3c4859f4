//! One command, from its start to the last process that it left.
