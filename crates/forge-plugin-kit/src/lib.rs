//! What a plugin author links: a session of the forge plugin protocol v1 on stdin and stdout.
