//! TLS from PEM files, for servers that reload and clients that trust a private authority.
