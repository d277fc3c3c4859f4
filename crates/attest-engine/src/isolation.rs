//! How far steps were kept apart from the machine, in honest words.
