//! The appliance through its one binary: a Gate, Workers and plugins as real processes over real
//! sockets, repositories and databases.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the programs that they judge and wait in real time"
)]

mod appliance;
mod faults;
mod main_job;
mod privacy;
