//! Leases jobs, prepares workspaces, runs plugins and checks, makes candidates.
