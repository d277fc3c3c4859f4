//! Runs one operation of a forge plugin in a fresh process and says how it ended.
