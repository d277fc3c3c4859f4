//! What is refused and what survives, on a real file system.

#[cfg(test)]
mod files;
#[cfg(test)]
mod left_over;
#[cfg(test)]
mod private;
#[cfg(test)]
mod removal;
#[cfg(test)]
mod support;
#[cfg(test)]
mod target;
