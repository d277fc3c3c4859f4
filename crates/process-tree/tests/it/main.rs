//! Real processes: what is started, what is left of it, and how it is told.

mod support;

mod capture;
