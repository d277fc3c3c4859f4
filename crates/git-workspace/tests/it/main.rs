//! Workspaces and candidates with a real git, in throwaway repositories.

#[cfg(test)]
mod base;
#[cfg(test)]
mod candidate;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod racy;
#[cfg(test)]
mod shared_repository;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod support;
#[cfg(test)]
mod untouched;
#[cfg(test)]
mod workspace;
