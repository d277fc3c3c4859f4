//! Files and folders whose owner, mode and links are checked before they are trusted.
