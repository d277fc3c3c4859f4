//! Results of steps that need not run again.
