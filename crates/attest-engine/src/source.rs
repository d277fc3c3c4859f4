//! The git commit of a workspace.
