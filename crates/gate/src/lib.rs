//! The control server: queue, leases, evidence and the Worker link over HTTP.
