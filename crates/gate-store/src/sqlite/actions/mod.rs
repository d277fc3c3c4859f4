//! The operations that change something. Each runs inside one savepoint and changes a run only by
//! a transition of its machine.

pub(super) mod claim;
pub(super) mod complete;
pub(super) mod evidence;
pub(super) mod hand_over;
pub(super) mod lease;
pub(super) mod owner;
pub(super) mod pools;
pub(super) mod slots;
pub(super) mod submit;
