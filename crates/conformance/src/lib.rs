//! Tests a forge plugin executable against the plugin protocol v1.
