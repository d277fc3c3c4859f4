//! What every program shares: output, errors and exit codes, configuration, logs, help.
