//! Workspaces and candidates with a real git, in throwaway repositories.

#[cfg(test)]
mod base;
#[cfg(test)]
mod candidate;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod racy;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod support;
#[cfg(test)]
mod workspace;
