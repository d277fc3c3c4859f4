//! The machines of runs, attempts and leases, and the records that they keep.
