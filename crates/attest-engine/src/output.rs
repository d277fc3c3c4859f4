//! What a step writes: shown line by line, kept within bounds, secrets replaced.
