//! Why an archive, or a set of files, is refused.

use std::fmt;

use crate::path::visible;

/// A refusal: which entry, which rule, and which limit where it is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ArchiveError {
    /// What was being read or written; none where the archive as a whole is refused.
    pub entry: Option<Entry>,
    /// The rule that does not hold.
    pub rule: Rule,
}

/// The place of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Counted from one in the order of the archive; zero where there is no archive yet.
    pub number: u64,
    /// The name with everything that a terminal would act on made visible; may be empty.
    pub name: String,
}

impl ArchiveError {
    pub(crate) fn whole(rule: Rule) -> Self {
        Self { entry: None, rule }
    }

    pub(crate) fn at(number: u64, name: &[u8], rule: Rule) -> Self {
        Self {
            entry: Some(Entry {
                number,
                name: visible(name),
            }),
            rule,
        }
    }

    /// The rule as one word that stays the same between versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.rule.code()
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(Entry { number: 0, name }) => write!(f, "`{name}`: ")?,
            Some(Entry { number, name }) => write!(f, "entry {number} `{name}`: ")?,
            None => {}
        }
        write!(f, "{} ({})", self.rule, self.rule.code())
    }
}

/// A limit by the name that callers set it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitName {
    /// Bytes of the archive.
    ArchiveBytes,
    /// Bytes of the tar stream.
    UncompressedBytes,
    /// Bytes of all files.
    TotalBytes,
    /// Bytes of one file.
    FileBytes,
    /// Number of files.
    Files,
    /// Number of entries.
    Entries,
    /// Components of a path.
    Depth,
}

impl LimitName {
    /// The name in options and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ArchiveBytes => "max_archive_bytes",
            Self::UncompressedBytes => "max_uncompressed_bytes",
            Self::TotalBytes => "max_total_bytes",
            Self::FileBytes => "max_file_bytes",
            Self::Files => "max_files",
            Self::Entries => "max_entries",
            Self::Depth => "max_depth",
        }
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident, $code:literal, $text:literal;)*) => {
        /// What does not hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            /// A limit is exceeded.
            Limit {
                /// Which one.
                name: LimitName,
                /// What it is set to.
                limit: u64,
            },
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// Every code with what it says, in the order of the reference page.
            pub const CODES: &'static [(&'static str, &'static str)] = &[
                ("limit_exceeded", "more than a limit allows"),
                $(($code, $text),)*
            ];

            /// The rule as one word that stays the same between versions.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self {
                    Self::Limit { .. } => "limit_exceeded",
                    $(Self::$name => $code,)*
                }
            }
        }

        impl fmt::Display for Rule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Limit { name, limit } => write!(f, "more than {} allows, which is {limit}", name.as_str()),
                    $(Self::$name => f.write_str($text),)*
                }
            }
        }
    };
}

rules! {
    /// No gzip header.
    GzipHeader, "gzip_header", "does not begin with the header of a gzip member";
    /// Reserved flags.
    GzipFlags, "gzip_flags", "the gzip header sets reserved flags";
    /// The checksum over the gzip header.
    GzipHeaderChecksum, "gzip_header_checksum", "the checksum of the gzip header does not match";
    /// The compressed data ends early.
    GzipTruncated, "gzip_truncated", "the gzip member ends too early";
    /// The compressed data is damaged.
    GzipData, "gzip_data", "the compressed data is damaged";
    /// The checksum over the contents.
    GzipChecksum, "gzip_checksum", "the checksum of the gzip member does not match its contents";
    /// The size in the trailer.
    GzipSize, "gzip_size", "the size in the gzip trailer does not match its contents";
    /// More after the first member.
    GzipTrailing, "gzip_trailing", "more bytes follow the gzip member; one member is the whole archive";
    /// The stream ends in the middle of a header, a body or a padding.
    TarTruncated, "tar_truncated", "the archive ends in the middle of an entry";
    /// Fewer than two zero blocks at the end.
    TarEnd, "tar_end", "the archive does not end with two zero blocks";
    /// Something after the end.
    TarTrailing, "tar_trailing", "data that is not zero follows the end of the archive";
    /// The padding of a body.
    TarPadding, "tar_padding", "the padding after the contents is not zero";
    /// The last bytes of a header.
    HeaderPadding, "header_padding", "the unused bytes of the header are not zero";
    /// The sum over a header.
    HeaderChecksum, "header_checksum", "the checksum of the header does not match";
    /// Another format.
    HeaderMagic, "header_magic", "the header is not of the format USTAR, version 00";
    /// A type that is neither file nor folder.
    EntryType, "entry_type", "only regular files and folders are allowed: no links, devices or extensions";
    /// The size field.
    HeaderSize, "header_size", "the size is not an octal number with its terminator";
    /// A folder with contents.
    FolderSize, "folder_size", "a folder has contents";
    /// Other numbers.
    HeaderNumber, "header_number", "a number in the header is not octal";
    /// A device number where there is no device.
    HeaderDevice, "header_device", "the header names a device";
    /// A link name where there is no link.
    LinkName, "link_name", "the header of a file or folder names a link target";
    /// Bytes after the terminator of a text.
    HeaderText, "header_text", "bytes follow the end of a text in the header";
    /// A name that is no text.
    PathUtf8, "path_utf8", "the path is not UTF-8";
    /// No name.
    PathEmpty, "path_empty", "the path is empty";
    /// Begins at the root.
    PathAbsolute, "path_absolute", "the path is absolute";
    /// An empty component.
    PathComponent, "path_component", "the path has an empty component or one that is `.`";
    /// A component `..`.
    PathTraversal, "path_traversal", "the path has a component `..`";
    /// A backslash.
    PathBackslash, "path_backslash", "the path has a backslash";
    /// A drive.
    PathDrive, "path_drive", "the path has a drive prefix";
    /// A character that terminals act on.
    PathControl, "path_control", "the path has a control character";
    /// Does not fit a header.
    PathTooLong, "path_too_long", "the path does not fit the name (100 bytes) and prefix (155 bytes) of USTAR";
    /// Twice the same name.
    Duplicate, "duplicate", "the path is in the archive already";
    /// A file where a folder is, or a folder where a file is.
    Conflict, "conflict", "the path is a file and a folder";
    /// A mode without a file.
    ModeWithoutFile, "mode_without_file", "a mode is given for a path that is not among the files";
}
