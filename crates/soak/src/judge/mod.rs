//! What must hold when all has ended.

pub(crate) mod database;
pub(crate) mod machine;
pub(crate) mod repository;
