//! The places where a run asks whether it may go on.
