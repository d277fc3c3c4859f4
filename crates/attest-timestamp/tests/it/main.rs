//! Tokens: what holds, and what each rule refuses.

#[cfg(test)]
mod certificates;
#[cfg(test)]
mod common;
#[cfg(test)]
mod damaged;
#[cfg(test)]
mod fuzz_corpus;
#[cfg(test)]
mod honest;
#[cfg(test)]
mod openssl;
#[cfg(test)]
mod statements;
